"""What a stopped command left is gone on with, and no exit code makes it go."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.projects import run_all, write

from tfdyno.core.base.errors import ToolError
from tfdyno.jobs.project import _outputs as _run_outputs
from tfdyno.jobs.project import _step as _run_step
from tfdyno.jobs.project._child import WorkingPlace, ended
from tfdyno.store.project_history import ProjectHistory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TRAIN = 'steps.t = {command = "train", workload = "train.py"}'
CHECKPOINT = "run/checkpoints/step-1.json"


class Children:
    """Stands for the commands of steps: what each did, and the words of each."""

    def __init__(self, *ends: Callable[[Path], int]) -> None:
        self.ends = list(ends)
        self.words: list[tuple[str, ...]] = []

    def __call__(
        self, words: tuple[str, ...], place: WorkingPlace, *, said: Callable[[str], None]
    ) -> int:
        self.words.append(words)
        return self.ends[len(self.words) - 1](place.answer.parent)


def stopped(part: Path) -> int:
    """A training that wrote a checkpoint before Ctrl-C."""
    write(part, {"run/run.json": "{}", CHECKPOINT: "{}"})
    raise KeyboardInterrupt


def refused(part: Path) -> int:
    (part / "step.log").write_text("tfdyno: there is no file data.npz.\n")
    return 2


def good(part: Path) -> int:
    (part / "answer.json").write_text("{}")
    return 0


def ended_early(part: Path) -> int:
    write(part, {"run/run.json": "{}", CHECKPOINT: "{}"})
    (part / "answer.json").write_text(json.dumps({"stopped": "spot notice", "model": ""}))
    return 0


def project(folder: Path, text: str = TRAIN) -> Path:
    write(folder, {"project.toml": text, "train.py": ""})
    return folder / "project.toml"


def runs(folder: Path, monkeypatch: pytest.MonkeyPatch, *ends: Callable[[Path], int]) -> Children:
    children = Children(*ends)
    monkeypatch.setattr(_run_step, "ended", children)
    return children


def parts(folder: Path) -> list[Path]:
    return list((folder / "tfdyno-project" / "outputs").glob("*.part"))


def test_a_training_that_is_refused_when_it_goes_on_keeps_its_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = project(tmp_path)
    children = runs(tmp_path, monkeypatch, stopped, refused, good)
    with pytest.raises(KeyboardInterrupt):
        run_all(file)
    (failed,) = run_all(file).steps
    (part,) = parts(tmp_path)
    assert (part / CHECKPOINT).exists()
    assert failed.error == (
        "step t ended with exit code 2: there is no file data.npz; to begin it anew, delete "
        f"tfdyno-project/outputs/{part.name}."
    )
    assert run_all(file).status == "finished"
    assert [("--resume" in words) for words in children.words] == [False, True, True]


@pytest.mark.parametrize("command", ["train", "launch"])
def test_a_training_that_was_ended_early_is_not_done_and_goes_on(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = project(tmp_path, TRAIN.replace('"train"', f'"{command}"'))
    children = runs(tmp_path, monkeypatch, ended_early, good)
    (step,) = run_all(file).steps
    assert (step.status, step.error) == (
        "failed", "step t was ended before its end: spot notice; the same command goes on."
    )  # fmt: skip
    (part,) = parts(tmp_path)
    assert (part / CHECKPOINT).exists()
    (again,) = run_all(file).steps
    assert again.status == "finished"
    assert (tmp_path / "tfdyno-project" / again.output / CHECKPOINT).exists()
    # Launch goes on by itself where --output holds a run.
    assert ("--resume" in children.words[1]) == (command == "train")


def test_a_training_whose_loss_is_no_number_has_ended_where_that_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(part: Path) -> int:
        (part / "answer.json").write_text(json.dumps({"stopped": "NaN loss"}))
        return 1

    runs(tmp_path, monkeypatch, lost)
    file = project(tmp_path, TRAIN.replace("}", ", allow-findings = true}"))
    assert run_all(file).status == "finished"


@pytest.mark.parametrize(
    ("command", "left"), [("bench", "results/results.sqlite"), ("tune", "tune/.lock")]
)
def test_what_a_command_cannot_go_on_with_is_begun_anew_without_trying(
    command: str, left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(part: Path) -> int:
        write(part, {left: ""})  # before its first run, or its first trial
        raise KeyboardInterrupt

    file = project(tmp_path, TRAIN.replace('"train"', f'"{command}"'))
    children = runs(tmp_path, monkeypatch, killed, good)
    with pytest.raises(KeyboardInterrupt):
        run_all(file)
    assert run_all(file).status == "finished"
    assert [("--resume" in words) for words in children.words] == [False, False]


@pytest.mark.parametrize("name", ["project.toml", "other.toml"])
def test_a_training_that_was_begun_outlives_another_one_of_its_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = project(tmp_path)
    children = runs(tmp_path, monkeypatch, stopped, good, good)
    with pytest.raises(KeyboardInterrupt):
        run_all(file)
    write(tmp_path, {name: TRAIN.replace("}", ", epochs = 2}")})
    assert run_all(tmp_path / name).status == "finished"
    (part,) = parts(tmp_path)
    assert (part / CHECKPOINT).exists()
    write(tmp_path, {name: TRAIN})
    assert run_all(file).status == "finished"
    assert "--resume" in children.words[2]
    assert parts(tmp_path) == []


def test_what_no_command_would_go_on_with_goes_when_the_step_is_made(tmp_path: Path) -> None:
    file = project(tmp_path, 'steps.t = {command = "python a.py"}')
    for code, left in ((1, 1), (2, 2), (0, 0)):
        write(tmp_path, {"a.py": f"raise SystemExit({code})"})
        run_all(file)
        assert len(parts(tmp_path)) == left


def test_what_was_asked_for_and_failed_outlives_a_run_that_takes_what_stood(tmp_path: Path) -> None:
    text = 'steps.a = {command = "python a.py"}\nsteps.b = {command = "recipe show", needs = ["a"]}'
    fails = "import pathlib; raise SystemExit(pathlib.Path('fails').exists())"
    write(tmp_path, {"project.toml": text, "a.py": fails})
    file = tmp_path / "project.toml"
    run_all(file)
    write(tmp_path, {"fails": ""})
    assert run_all(file, force=("a",)).status == "failed"
    assert [step.status for step in run_all(file, begin="b").steps] == ["reused", "reused"]
    assert len(parts(tmp_path)) == 1
    (tmp_path / "fails").unlink()
    assert [step.status for step in run_all(file).steps] == ["finished", "finished"]
    assert parts(tmp_path) == []


@pytest.mark.parametrize("how", ["failed", "stopped"])
def test_a_full_disk_does_not_hide_how_a_step_ended(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_path: Path, _data: bytes) -> None:
        raise OSError(28, "No space left on device")

    def ends(part: Path) -> int:
        monkeypatch.setattr(_run_outputs, "write_atomic", full)
        return stopped(part) if how == "stopped" else refused(part)

    file = project(tmp_path)
    runs(tmp_path, monkeypatch, ends)
    if how == "stopped":
        with pytest.raises(KeyboardInterrupt):
            run_all(file)
    else:
        assert run_all(file).steps[0].error.startswith("step t ended with exit code 2: there is")
    (last,) = ProjectHistory(folder=tmp_path / "tfdyno-project").runs()
    assert (last.status, last.steps[0].status) == (how, how)


def test_a_log_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    place = WorkingPlace(
        cwd=tmp_path, environment={}, answer=tmp_path / "a", log=tmp_path / "no" / "log"
    )
    with pytest.raises(ToolError, match=r"^cannot write .*/no/log: No such file or directory\.$"):
        ended(("true",), place, said=lambda _line: None)
