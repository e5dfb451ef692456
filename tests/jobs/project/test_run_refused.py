"""What a project cannot run is refused, and a step that fails is told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.projects import CHAIN, chain, output, reasons, run_all, statuses, write

from tfdyno.cli.project import step_commands
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.lock import lock_folder
from tfdyno.core.project.project import DOCUMENT, LOCK, LOG, ProjectRun
from tfdyno.jobs.project import _step as _run_step
from tfdyno.jobs.project.run import RunRequest, needed_server, preview
from tfdyno.store.project_history import ProjectHistory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def previewed(file: Path) -> ProjectRun:
    return preview(RunRequest(file=file), step_commands)


def test_a_file_that_another_step_made_and_that_is_gone_is_told_with_that_step(
    tmp_path: Path,
) -> None:
    file = chain(tmp_path)
    first = run_all(file)
    made = output(file, first, "a") / "a.txt"
    made.unlink()
    (tmp_path / "project.toml").write_text(CHAIN.replace("b.txt", "new.txt"))
    with pytest.raises(UsageError) as error:
        run_all(file)
    assert str(error.value).startswith("step b: there is no file or folder ")
    assert str(error.value).endswith(": step a makes it; make it again with --force a.")
    (last, *_) = ProjectHistory(folder=tmp_path / "tfdyno-project").runs()
    assert (last.status, statuses(last)["b"]) == ("failed", "failed")
    assert statuses(run_all(file, force=("a",)))["c"] == "finished"


def test_an_input_that_is_gone_is_told_before_anything_runs(tmp_path: Path) -> None:
    file = chain(tmp_path)
    (tmp_path / "start.txt").unlink()
    with pytest.raises(UsageError, match=r"step a: there is no file or folder .*start.txt"):
        run_all(file)
    assert not (tmp_path / "ran.txt").exists()


def test_a_script_that_is_not_there_is_told_with_its_neighbour(tmp_path: Path) -> None:
    text = 'steps.a = {command = "train", workload = "tarin.py:make"}'
    write(tmp_path, {"project.toml": text, "train.py": ""})
    with pytest.raises(UsageError, match=r"step a: there is no .*tarin.py; did you mean .*train"):
        run_all(tmp_path / "project.toml")


def test_a_failed_step_ends_the_run_and_the_next_one_goes_on_from_it(tmp_path: Path) -> None:
    file = chain(tmp_path)
    good = (tmp_path / "copy.py").read_text()
    broken = good + "\nif target.name == 'b.txt':\n    sys.exit('no room for b')\n"
    (tmp_path / "copy.py").write_text(broken)
    found = run_all(file)
    assert found.status == "failed"
    # The free step stands behind the three in the file, so it did not run either.
    assert statuses(found) == {"a": "finished", "b": "failed"}
    failed = found.steps[1]
    assert failed.error == "step b ended with exit code 1: no room for b."
    assert failed.exit_code == 1
    assert failed.words[:2] == ("python", "copy.py")
    log = tmp_path / "tfdyno-project" / f"{failed.output}.part" / LOG
    assert "no room for b" in log.read_text()
    assert reasons(run_all(file)) == {"b": "it failed last time"}
    (tmp_path / "copy.py").write_text(good)
    assert statuses(run_all(file)) == dict.fromkeys(["a", "b", "c", "other"], "finished")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("sys.exit(3)", "step b ended with exit code 3."),
        ("os.kill(os.getpid(), 9)", "step b was ended by signal 9."),
        ("print('one', file=sys.stderr); print('two', file=sys.stderr); sys.exit(2)",
         "step b ended with exit code 2: one / two."),
    ],
)  # fmt: skip
def test_the_end_of_a_failed_command_is_told(code: str, words: str, tmp_path: Path) -> None:
    text = 'steps.b = {command = "python b.py"}'
    write(tmp_path, {"project.toml": text, "b.py": f"import os, sys\n{code}\n"})
    (step,) = run_all(tmp_path / "project.toml").steps
    assert step.error == words


def test_a_failed_command_of_ours_is_told_by_its_own_sentence(tmp_path: Path) -> None:
    text = 'steps.a = {command = "models add", path = "m.keras", store = "store"}'
    write(tmp_path, {"project.toml": text, "m.keras": "no model"})
    (step,) = run_all(tmp_path / "project.toml").steps
    assert step.exit_code == 2
    assert step.error.startswith("step a ended with exit code 2: m.keras ")
    assert " / " not in step.error


def test_findings_are_a_failure_only_where_the_file_does_not_allow_them(tmp_path: Path) -> None:
    text = 'steps.b = {command = "python b.py", allow-findings = %s}'
    write(tmp_path, {"b.py": 'print(\'{"summary": "slow"}\'); raise SystemExit(1)'})
    for allowed, status in (("false", "failed"), ("true", "finished")):
        (tmp_path / "project.toml").write_text(text % allowed)
        (step,) = run_all(tmp_path / "project.toml").steps
        assert (step.status, step.exit_code) == (status, 1)
    assert step.headline == "slow"
    (again,) = run_all(tmp_path / "project.toml").steps
    assert (again.status, again.exit_code) == ("reused", 1)
    (tmp_path / "project.toml").write_text(text % "false")
    (now,) = run_all(tmp_path / "project.toml").steps
    assert (now.status, now.why) == ("failed", "it found something of severity error")
    assert now.error == "step b ended with exit code 1: slow."


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"only": ("d",)}, "has no step d; there are a, b, c, other"),
        ({"force": ("oter",)}, "has no step oter; did you mean other?"),
        ({"begin": "x"}, "has no step x"),
        ({"begin": "b", "only": ("c",)}, "--from and --only contradict"),
        ({"begin": "c", "force": ("a",)}, "--force a is before --from c; give --from a"),
        ({"begin": "c"}, "step a comes before c and has made nothing that stands"),
    ],
)
def test_steps_that_cannot_be_asked_for_are_refused(
    asked: dict[str, Any], said: str, tmp_path: Path
) -> None:
    file = chain(tmp_path)
    with pytest.raises(UsageError) as error:
        run_all(file, **asked)
    assert said in str(error.value)
    assert not (tmp_path / "ran.txt").exists()


def test_a_second_run_at_the_same_time_is_refused(tmp_path: Path) -> None:
    file = chain(tmp_path)
    run_all(file)
    lock = lock_folder(tmp_path / "tfdyno-project", LOCK)
    with pytest.raises(UsageError, match="is in use by another run: process"):
        run_all(file)
    lock.close()
    assert run_all(file).status == "finished"


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    file = chain(tmp_path)
    (tmp_path / "tfdyno-project").write_text("a file")
    with pytest.raises(UsageError, match=r"cannot write to .*tfdyno-project: File exists"):
        run_all(file)


@pytest.mark.parametrize("look", [run_all, previewed])
def test_a_reference_that_names_nothing_in_what_stands_is_told_before_anything_runs(
    look: Callable[[Path], object], tmp_path: Path
) -> None:
    file = chain(tmp_path)
    run_all(file, only=("b",))
    (tmp_path / "project.toml").write_text(CHAIN.replace("{b.path}", "{b.paht}"))
    with pytest.raises(UsageError, match=r"^step c: \{b.paht\} names nothing: b has no paht; "):
        look(file)
    assert (tmp_path / "ran.txt").read_text().split() == ["a.txt", "b.txt"]


def test_a_reference_that_names_nothing_in_what_was_just_made_is_told_with_its_step(
    tmp_path: Path,
) -> None:
    file = chain(tmp_path, CHAIN.replace("{b.path}", "{b.paht}"))
    with pytest.raises(UsageError, match=r"^step c: \{b.paht\} names nothing"):
        run_all(file)


def test_halves_of_signs_in_an_answer_are_replaced(tmp_path: Path) -> None:
    text = 'steps.b = {command = "python b.py"}'
    prints = r"""print(r'{"headline": "a\ud800b", "\ud801": ["\ud83d\ude00"]}')"""
    write(tmp_path, {"project.toml": text, "b.py": prints})
    (step,) = run_all(tmp_path / "project.toml").steps
    assert (step.status, step.headline) == ("finished", "a?b")
    document = output(tmp_path / "project.toml", run_all(tmp_path / "project.toml"), "b")
    assert json.loads((document / DOCUMENT).read_text())["?"] == ["\U0001f600"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'command = "python {"x" * 300}.py"', "step a: there is no file or folder"),
        (f'command = "python b.py"\ninputs = ["{"x" * 300}"]', "step a: there is no file or"),
    ],
)
def test_a_name_that_is_too_long_for_a_file_is_one_that_is_not_there(
    text: str, said: str, tmp_path: Path
) -> None:
    write(tmp_path, {"project.toml": f"[steps.a]\n{text}", "b.py": ""})
    with pytest.raises(UsageError, match=said):
        run_all(tmp_path / "project.toml")


def test_a_folder_that_may_not_be_written_is_the_users_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfdyno.jobs.project.run.os.access", lambda _path, _mode: False)
    with pytest.raises(UsageError, match=r"^cannot write to .*tfdyno-project: it is read-only\.$"):
        run_all(chain(tmp_path))
    assert not (tmp_path / "ran.txt").exists()


def test_serving_is_refused_before_anything_runs_where_there_is_nothing_to_serve_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFDYNO_SERVING", str(tmp_path / "none"))
    file = chain(tmp_path, f'{CHAIN}\n[steps.serve]\ncommand = "serve"\nmodel = "{{c}}/m"\n')
    with pytest.raises(UsageError, match=r"^step serve: .*make it once with tfdyno serve --setup"):
        run_all(file)
    assert not (tmp_path / "ran.txt").exists()
    assert run_all(file, only=("c",)).status == "finished"


def test_an_environment_is_offered_only_where_the_run_would_serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFDYNO_SERVING", str(tmp_path / "none"))
    serving = chain(tmp_path, f'{CHAIN}\n[steps.serve]\ncommand = "serve"\nmodel = "{{c}}/m"\n')
    needed = needed_server(RunRequest(file=serving), step_commands)
    assert needed
    assert needed.folder == tmp_path / "none"
    assert needed_server(RunRequest(file=serving, only=("c",)), step_commands) is None
    assert needed_server(RunRequest(file=chain(tmp_path)), step_commands) is None


def test_a_server_that_does_not_start_is_told_by_its_own_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_run_step, "serving_python", lambda: None)
    monkeypatch.setenv("TFDYNO_SERVING", str(tmp_path / "none"))
    write(tmp_path, {"project.toml": 'steps.s = {command = "serve", model = "m.keras"}',
                     "m.keras": "no model"})  # fmt: skip
    (step,) = run_all(tmp_path / "project.toml").steps
    assert (step.status, step.exit_code) == ("failed", 2)
    assert step.error.startswith("step s ended with exit code 2: ")
    assert " / " not in step.error
    log = tmp_path / "tfdyno-project" / f"{step.output}.part" / LOG
    assert step.error.partition("code 2: ")[2] in log.read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('steps.a = {command = "trian"}', "step a: there is no command 'trian'; did you mean"),
        ('steps.a = {command = "models"}', "step a: models alone is no command; there are models"),
        ('steps.a = {command = "run"}', "step a: run cannot be a step"),
        ('steps.a = {command = "python"}', "step a: python runs no script; write python FILE.py"),
        ('steps.a = {command = "python x.sh"}', "step a: python x.sh runs no script"),
        (
            'steps.a = {command = "train", workload = "t.py", epoch = 3}',
            "step a: train has no option epoch; did you mean epochs?",
        ),
        (
            'steps.a = {command = "train", workload = "t.py", epochs = "many"}',
            "step a: epochs 'many' is not a number",
        ),
        ('steps.a = {command = "train"}', "step a: missing argument 'WORKLOAD'"),
        ('steps.a = {command = "export", model = "m"}', "step a: missing option '--to'"),
        ('steps.a = {command = "serve", model = "m", port = 8501}', "port cannot be given"),
        (
            'steps.a = {command = "recipe show", output = "r.toml"}',
            "step a: output = 'r.toml' is outside of the step's folder: what a step makes",
        ),
        (
            'steps.a = {command = "serve", model = "m", load = {html = "p.html"}}',
            "step a: html = 'p.html' is outside of the step's folder",
        ),
        (
            'steps.a = {command = "serve", model = "m", load = {client = 3}}',
            "step a: bench --serve has no option client; did you mean clients?",
        ),
    ],
)
def test_wrong_commands_and_options_are_refused_before_anything_runs(
    text: str, said: str, tmp_path: Path
) -> None:
    write(tmp_path, {"project.toml": text})
    with pytest.raises(UsageError) as error:
        run_all(tmp_path / "project.toml")
    assert said in str(error.value)
    assert not (tmp_path / "tfdyno-project").exists()


def test_a_file_that_is_none_or_damaged_is_told(tmp_path: Path) -> None:
    write(tmp_path, {"project.toml": "[steps", "p.toml": ""})
    with pytest.raises(UsageError, match=r"project.toml is not valid TOML: .*end of a table"):
        run_all(tmp_path / "project.toml")
    with pytest.raises(UsageError, match=r"there is no file .*projct.toml; did you mean"):
        run_all(tmp_path / "projct.toml")
    with pytest.raises(UsageError, match=r"is a folder; name a file, .*project.toml"):
        run_all(tmp_path)
