"""What a step's key rests on: what it names, and nothing else by the same name."""

from __future__ import annotations

import itertools
import sys
from typing import TYPE_CHECKING, Any

import pytest
from tests.projects import run_all, statuses, write

from tfdyno import __version__
from tfdyno.cli.project.step_commands import shape_of
from tfdyno.core.project.project import Project, ProjectStep
from tfdyno.jobs.project import _inputs
from tfdyno.jobs.project._inputs import rests_on
from tfdyno.jobs.project.run import RunReporter
from tfdyno.store import digests

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.project.project import StepRun


def rests(folder: Path, options: dict[str, Any], command: str = "python a.py") -> dict[str, str]:
    write(folder, {"a.py": ""})
    step = ProjectStep(name="a", command=command, options=options)
    project = Project(name="p", file=folder / "project.toml", steps=(step,))
    shape = None if command.startswith("python") else shape_of(command)
    return rests_on(step, shape, project, {}, lambda path: path.read_text())


def files(folder: Path, options: dict[str, Any], command: str = "python a.py") -> set[str]:
    found = rests(folder, options, command)
    return {name.removeprefix("file ") for name in found if name.startswith("file ")}


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["--config=conf.yaml"], {"conf.yaml"}),
        (["--config", "conf.yaml"], {"conf.yaml"}),
        (["--data=one.csv,two.csv"], {"one.csv", "two.csv"}),
        (["train=one.csv,test=two.csv"], {"one.csv", "two.csv"}),
        (["odd=name,x.csv"], {"odd=name,x.csv"}),
        (["--config={output}/conf.yaml", "--out=new.py", "--rows=5", "=", ",", "."], set()),
    ],
)
def test_a_file_within_a_word_counts(words: list[str], wanted: set[str], tmp_path: Path) -> None:
    write(
        tmp_path, dict.fromkeys(["conf.yaml", "one.csv", "two.csv", "odd=name,x.csv", "name"], "")
    )
    assert files(tmp_path, {"arguments": words}) == {"a.py"} | wanted


def test_a_module_of_the_project_counts_with_what_it_imports(tmp_path: Path) -> None:
    write(tmp_path, {"pkg/__init__.py": "", "pkg/model.py": "import layers", "layers.py": "",
                     "other.py": ""})  # fmt: skip
    found = files(tmp_path, {"workload": "pkg.model:make:data"}, "train")
    assert found == {"pkg/__init__.py", "pkg/model.py", "layers.py"}
    assert files(tmp_path, {"workload": "keras:ResNet50"}, "estimate") == set()


def test_other_command_lines_have_other_keys(tmp_path: Path) -> None:
    values: list[Any] = ["a b", ["a", "b"], ["a b", ""], "true", True, False, "", [], "[]", "'a b'"]
    found = [rests(tmp_path, {"arguments": value}) for value in values]
    assert all(one != other for one, other in itertools.combinations(found, 2))
    both = rests(tmp_path, {"batch_size": 1, "batch-size": 2})
    assert (both["option batch_size"], both["option batch-size"]) == ("1", "2")


def test_one_option_of_a_command_has_one_name(tmp_path: Path) -> None:
    one = rests(tmp_path, {"workload": "a.py", "batch_size": 1}, "estimate")
    assert one == rests(tmp_path, {"workload": "a.py", "batch-size": 1}, "estimate")


def test_a_token_among_words_is_its_digest(tmp_path: Path) -> None:
    for words in (["--token", "hush", "x"], ["--token=hush", "x"], "--token=hush"):
        assert "hush" not in str(rests(tmp_path, {"arguments": words}))
    assert "hush" not in str(rests(tmp_path, {"token": "hush"}))


def test_versions_are_those_of_the_interpreter_that_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        tmp_path,
        {
            "site/keras-3.99.dist-info/METADATA": "Metadata-Version: 2.1\nName: keras\n"
            "Version: 3.99\n",
            "py": f'#!/bin/sh\nexec "{sys.executable}" -P -S "$@"\n',
        },
    )
    (tmp_path / "py").chmod(0o755)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    options = {"workload": "a.py", "python": "./py"}
    versions = {name: found for name, found in rests(tmp_path, options, "train").items()
                if name in (*_inputs.FRAMEWORKS, "tfdyno")}  # fmt: skip
    assert versions == {"tfdyno": __version__, "keras": "3.99"}
    monkeypatch.setattr(_inputs, "_active", lambda: str(tmp_path / "py"))
    active = rests(tmp_path, {"workload": "a.py"}, "train")
    assert active["keras"] == "3.99"


def test_what_changes_while_a_step_runs_is_told_and_the_next_run_makes_it_anew(
    tmp_path: Path,
) -> None:
    edits = """
import json, pathlib
text = pathlib.Path("in.txt").read_text()
if text == "0":
    pathlib.Path("in.txt").write_text("1")  # somebody edits it just now
print(json.dumps({"headline": text}))
"""
    text = 'steps.a = {command = "python a.py", inputs = ["in.txt"]}'
    write(tmp_path, {"project.toml": text, "a.py": edits, "in.txt": "0"})
    file = tmp_path / "project.toml"
    (step,) = run_all(file).steps
    assert step.headline == "0; in.txt changed while it ran: the next run makes it anew"
    (tmp_path / "in.txt").write_text("0")  # and takes it back: it has the same key as before
    (again,) = run_all(file).steps
    assert (again.status, again.why) == ("finished", "in.txt changed while it ran")
    (third,) = run_all(file).steps
    assert (third.status, third.headline) == ("finished", "1")
    assert statuses(run_all(file)) == {"a": "reused"}


def test_a_large_input_is_read_once_and_that_is_kept_though_the_run_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "SETTLED_S", 0.0)
    texts = [f'steps.{name} = {{command = "python a.py", inputs = ["large"]}}' for name in "ab"]
    write(tmp_path, {"project.toml": "\n".join(texts), "a.py": "", "large": "x" * (1 << 20)})
    file = tmp_path / "project.toml"
    read: list[str] = []

    def stop(_step: StepRun, _number: int, _count: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(file, RunReporter(begun=stop, reads=read.append))
    assert run_all(file, RunReporter(reads=read.append)).status == "finished"
    assert read == ["large"]
