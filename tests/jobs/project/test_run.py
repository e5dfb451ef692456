"""Projects of small scripts, run by real children."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from tests.projects import CHAIN, chain, output, reasons, run_all, statuses, write

from tfdyno.cli.project import step_commands
from tfdyno.core.project.project import DOCUMENT, LOG, ProjectRun, StepRun
from tfdyno.jobs.project.run import RunReporter, RunRequest, preview
from tfdyno.jobs.project.runs import run_named
from tfdyno.store.project_history import ProjectHistory

ALL = {"a", "b", "c", "other"}
MODEL = next((Path(__file__).parents[2] / "data" / "litert").glob("*.tflite"))


def ran(file: Path) -> list[str]:
    return (file.parent / "ran.txt").read_text().split()


def test_steps_run_once_and_hand_on_what_they_made(tmp_path: Path) -> None:
    file = chain(tmp_path)
    found = run_all(file)
    assert statuses(found) == dict.fromkeys(["a", "b", "c", "other"], "finished")
    assert set(reasons(found).values()) == {"it has not run yet"}
    assert (output(file, found, "c") / "c.txt").read_text() == "0+++"
    document = json.loads((output(file, found, "b") / DOCUMENT).read_text())
    assert (tmp_path / document["path"]).read_text() == "0++"
    assert ".part" not in document["path"]
    assert [step.headline for step in found.steps[:3]] == ["2 signs", "3 signs", "4 signs"]
    again = run_all(file)
    assert statuses(again) == dict.fromkeys(ALL, "reused")
    assert [one.headline for one in again.steps] == [one.headline for one in found.steps]
    assert ran(file) == ["a.txt", "b.txt", "c.txt"]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"start.txt": "1"}, {"a": "start.txt changed", "b": "a ran anew", "c": "b ran anew"}),
        (
            {"copy.py": "import more\n", "more.py": ""},
            dict.fromkeys("abc", "copy.py changed; more.py is new"),
        ),
        (
            {"project.toml": CHAIN.replace("seed=1", "seed=2")},
            {"other": "option set seed=1 → seed=2"},
        ),
        (
            {"project.toml": CHAIN.replace("{a}/a.txt", "{a.path}")},
            {"b": "option arguments {a}/a.txt {output}/b.txt → {a.path} {output}/b.txt",
             "c": "b ran anew"},
        ),
        (
            {"project.toml": CHAIN.replace('[steps.c]\n', '[steps.c]\nneeds = ["other"]\n')},
            {"c": "other is now needed"},
        ),
        ({"README.md": "nobody reads it", "project.toml": f"# a remark\n{CHAIN}"}, {}),
    ],
    ids=["input", "module", "option", "reference", "need", "nothing"],
)  # fmt: skip
def test_a_change_makes_just_those_steps_run_again_that_rest_on_it(
    changes: dict[str, str], why: dict[str, str], tmp_path: Path
) -> None:
    file = chain(tmp_path)
    run_all(file)
    if "copy.py" in changes:
        changes = {**changes, "copy.py": changes["copy.py"] + (tmp_path / "copy.py").read_text()}
    write(tmp_path, changes)
    would = preview(RunRequest(file=file), step_commands)
    found = run_all(file)
    assert {name for name, status in statuses(found).items() if status == "finished"} == set(why)
    told = reasons(found)
    assert set(told) == set(why)
    for name, words in why.items():
        assert told[name].startswith(words[:29])  # long values are cut
    assert {step.step for step in would.steps if step.status != "reused"} == set(why)


def test_what_was_made_before_a_change_is_found_when_it_is_taken_back(tmp_path: Path) -> None:
    file = chain(tmp_path)
    run_all(file)
    write(tmp_path, {"start.txt": "1"})
    run_all(file)
    write(tmp_path, {"start.txt": "0"})
    assert statuses(run_all(file)) == dict.fromkeys(ALL, "reused")


def test_an_output_that_was_deleted_is_made_again_and_so_is_what_rests_on_it(
    tmp_path: Path,
) -> None:
    file = chain(tmp_path)
    shutil.rmtree(output(file, run_all(file), "b"))
    assert reasons(run_all(file)) == {"b": "its output is gone", "c": "b ran anew"}
    assert ran(file)[3:] == ["b.txt", "c.txt"]


def test_a_damaged_note_is_as_good_as_none(tmp_path: Path) -> None:
    file = chain(tmp_path)
    (output(file, run_all(file), "c") / "made.json").write_text("{")
    assert set(reasons(run_all(file))) == {"c"}


def test_what_a_script_prints_that_is_no_json_is_in_its_log(tmp_path: Path) -> None:
    text = 'steps.b = {command = "python b.py"}'
    write(tmp_path, {"project.toml": text, "b.py": "print('hello')"})
    file = tmp_path / "project.toml"
    found = run_all(file)
    assert json.loads((output(file, found, "b") / DOCUMENT).read_text()) == {}
    assert (output(file, found, "b") / LOG).read_text() == "hello\n"


def test_a_script_sees_its_options_and_the_folder_of_the_project(tmp_path: Path) -> None:
    text = '[steps.b]\ncommand = "python sub/b.py"\nrows = 5\nquick = true\ntag = ["x", "y"]'
    show = "import json, os, sys; print(json.dumps({'told': sys.argv[1:], 'cwd': os.getcwd()}))"
    write(tmp_path, {"project.toml": text, "sub/b.py": show})
    file = tmp_path / "project.toml"
    document = json.loads((output(file, run_all(file), "b") / DOCUMENT).read_text())
    assert document["told"] == ["--rows", "5", "--quick", "--tag", "x", "--tag", "y"]
    assert document["cwd"] == str(tmp_path.resolve())


def test_no_file_of_a_project_stands_for_a_module_of_python(tmp_path: Path) -> None:
    write(tmp_path, {"json.py": "raise SystemExit(9)", "tfdyno.py": "raise SystemExit(9)",
                     "project.toml": 'steps.b = {command = "recipe show"}'})  # fmt: skip
    assert run_all(tmp_path / "project.toml").status == "finished"


def test_only_some_steps_run_with_what_they_rest_on(tmp_path: Path) -> None:
    file = chain(tmp_path)
    assert statuses(run_all(file, only=("b",))) == {"a": "finished", "b": "finished"}


def test_a_run_tells_which_steps_it_was_to_do_and_which_making_it_took(tmp_path: Path) -> None:
    file = chain(tmp_path)
    first = run_all(file)
    again = run_all(file, force=("a",), only=("b",))
    assert (first.chosen, again.chosen) == (("a", "b", "c", "other"), ("a", "b"))
    stamps = {step.step: step.stamp for step in first.steps}
    assert all(stamps.values())
    assert {one.step for one in again.steps if one.stamp == stamps[one.step]} == set()
    assert {one.stamp for one in run_all(file, only=("b",)).steps} == {
        one.stamp for one in again.steps
    }


def test_force_makes_a_step_again_and_what_rests_on_it(tmp_path: Path) -> None:
    file = chain(tmp_path)
    run_all(file)
    found = run_all(file, force=("b",))
    assert statuses(found) == {"a": "reused", "b": "finished", "c": "finished", "other": "reused"}
    assert set(reasons(found).values()) == {"asked for"}


def test_what_rested_on_a_step_made_again_runs_also_where_a_kill_came_between(
    tmp_path: Path,
) -> None:
    file = chain(tmp_path)
    run_all(file)
    run_all(file, force=("b",), only=("b",))
    assert reasons(run_all(file)) == {"c": "b ran anew"}


def test_from_takes_what_was_made_last_changed_or_not(tmp_path: Path) -> None:
    file = chain(tmp_path)
    run_all(file)
    write(tmp_path, {"start.txt": "1"})
    (tmp_path / "project.toml").write_text(CHAIN.replace("c.txt", "d.txt"))
    found = run_all(file, begin="c")
    assert statuses(found) == {"a": "reused", "b": "reused", "c": "finished"}
    assert (output(file, found, "c") / "d.txt").read_text() == "0+++"
    assert set(reasons(run_all(file))) == {"a", "b", "c"}


def test_a_run_whose_process_is_gone_is_told_as_stopped(tmp_path: Path) -> None:
    file = chain(tmp_path)
    history = ProjectHistory(folder=tmp_path / "tfdyno-project")
    history.folder.mkdir()
    step = StepRun(step="a", command="python copy.py", key="00")
    history.write(ProjectRun(id="1", project="chain", steps=(step,)))
    run_all(file)
    killed = run_named(history.runs(), "1")
    assert (killed.status, killed.steps[0].status) == ("stopped", "stopped")
    assert history.runs()[0].status == "finished"


def test_what_stops_a_run_is_kept_and_told(tmp_path: Path) -> None:
    file = chain(tmp_path)

    def stop(step: StepRun, _number: int, _count: int) -> None:
        if step.step == "b":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as error:
        run_all(file, RunReporter(begun=stop))
    assert error.value.__notes__ == ["what is finished is kept, and the same command goes on."]
    (last,) = ProjectHistory(folder=tmp_path / "tfdyno-project").runs()
    assert last.status == "stopped"
    assert statuses(last) == {"a": "finished", "b": "stopped"}
    found = run_all(file)
    assert statuses(found) == {"a": "reused"} | dict.fromkeys(["b", "c", "other"], "finished")
    assert reasons(found)["b"] == "it was stopped last time"


def test_what_was_forced_and_stopped_goes_on_without_being_forced(tmp_path: Path) -> None:
    waits = """
import sys, time
from pathlib import Path
if Path("wait.txt").exists():
    print("waits", file=sys.stderr, flush=True)
    time.sleep(30)
"""
    text = 'steps.a = {command = "python a.py"}\nsteps.b = {command = "recipe show", needs = ["a"]}'
    write(tmp_path, {"project.toml": text, "a.py": waits})
    file = tmp_path / "project.toml"
    run_all(file)
    (tmp_path / "wait.txt").write_text("")

    def stop(_line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(file, RunReporter(said=stop), force=("a",))
    (tmp_path / "wait.txt").unlink()
    assert reasons(run_all(file)) == {"a": "it was stopped last time", "b": "a ran anew"}
    assert statuses(run_all(file)) == {"a": "reused", "b": "reused"}


def test_an_output_that_a_kill_left_whole_gets_its_name(tmp_path: Path) -> None:
    file = chain(tmp_path)
    folder = output(file, run_all(file), "c")
    folder.rename(folder.with_name(f"{folder.name}.part"))
    assert statuses(run_all(file))["c"] == "reused"
    assert (folder / "c.txt").exists()


def test_a_version_that_left_the_model_store_is_added_again(tmp_path: Path) -> None:
    text = '[project]\nstore = "store"\n[steps.a]\ncommand = "models add"\npath = "m.tflite"'
    write(tmp_path, {"project.toml": text})
    shutil.copy(MODEL, tmp_path / "m.tflite")
    file = tmp_path / "project.toml"
    assert run_all(file).steps[0].headline == "m:1"
    assert statuses(run_all(file)) == {"a": "reused"}
    shutil.rmtree(tmp_path / "store")
    assert reasons(run_all(file)) == {"a": "what it made elsewhere is gone"}


def test_a_project_may_be_moved(tmp_path: Path) -> None:
    chain(tmp_path / "one")
    run_all(tmp_path / "one" / "project.toml")
    (tmp_path / "one").rename(tmp_path / "two")
    found = run_all(tmp_path / "two" / "project.toml")
    assert statuses(found) == dict.fromkeys(ALL, "reused")
    (tmp_path / "two" / "project.toml").write_text(CHAIN.replace("c.txt", "d.txt"))
    assert statuses(run_all(tmp_path / "two" / "project.toml"))["c"] == "finished"


def test_a_project_that_its_folder_names_is_the_same_when_that_is_renamed(tmp_path: Path) -> None:
    chain(tmp_path / "one", CHAIN.replace('name = "chain"', ""))
    run_all(tmp_path / "one" / "project.toml")
    (tmp_path / "one").rename(tmp_path / "two")
    file = tmp_path / "two" / "project.toml"
    write(file.parent, {"start.txt": "1"})
    assert statuses(run_all(file, begin="c")) == {"a": "reused", "b": "reused", "c": "reused"}
    assert reasons(run_all(file))["a"] == "start.txt changed"


def test_a_project_in_another_folder_runs_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain(tmp_path / "sub")
    monkeypatch.chdir(tmp_path)
    found = run_all(Path("sub/project.toml"))
    assert statuses(found) == dict.fromkeys(["a", "b", "c", "other"], "finished")
    assert (output(Path("sub/project.toml"), found, "c") / "c.txt").read_text() == "0+++"
    assert [path.name for path in tmp_path.iterdir()] == ["sub"]


def test_outputs_are_no_business_of_git(tmp_path: Path) -> None:
    run_all(chain(tmp_path))
    assert (tmp_path / "tfdyno-project" / ".gitignore").read_text() == "*\n"


def test_two_words_are_another_option_than_one_with_a_blank(tmp_path: Path) -> None:
    text = '[steps.a]\ncommand = "python a.py"\narguments = %s'
    write(tmp_path, {"a.py": "", "project.toml": text % '["x y"]'})
    run_all(tmp_path / "project.toml")
    (tmp_path / "project.toml").write_text(text % '["x", "y"]')
    assert reasons(run_all(tmp_path / "project.toml")) == {"a": "option arguments 'x y' → x y"}


def test_a_token_is_in_no_record(tmp_path: Path) -> None:
    text = """
        [steps.a]
        command = "bench --serve"
        serve = "http://127.0.0.1:9/v1/models/m"
        token = "hush-hush"
        """
    write(tmp_path, {"project.toml": text})
    found = run_all(tmp_path / "project.toml")
    assert found.steps[0].words[-2:] == ("--token", "…") or "…" in found.steps[0].words
    folder = tmp_path / "tfdyno-project"
    told = [path for path in folder.rglob("*") if path.is_file() and b"hush" in path.read_bytes()]
    assert told == []


def test_a_token_of_a_script_is_in_no_record(tmp_path: Path) -> None:
    show = "import sys; raise SystemExit(sys.argv[-1] != 'hush-hush')"
    text = 'steps.a = {command = "python a.py", token = "hush-hush"}'
    write(tmp_path, {"project.toml": text, "a.py": show})
    assert run_all(tmp_path / "project.toml").steps[0].words == ("python", "a.py", "--token", "…")
    folder = tmp_path / "tfdyno-project"
    told = [path for path in folder.rglob("*") if path.is_file() and b"hush" in path.read_bytes()]
    assert told == []


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    file = chain(tmp_path)
    would = preview(RunRequest(file=file), step_commands)
    assert {step.step for step in would.steps} == ALL
    assert reasons(would)["b"] == "a would run anew"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "copy.py", "project.toml", "start.txt",
    ]  # fmt: skip


def test_children_find_what_this_process_does(tmp_path: Path) -> None:
    show = "import sys, json; print(json.dumps({'python': sys.executable}))"
    write(tmp_path, {"project.toml": 'steps.a = {command = "python a.py"}', "a.py": show})
    file = tmp_path / "project.toml"
    document = json.loads((output(file, run_all(file), "a") / DOCUMENT).read_text())
    assert Path(document["python"]).samefile(sys.executable)
