from __future__ import annotations

from pathlib import Path

from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.project.project import FOLDER, Project, ProjectRun, ProjectStep, StepRun


def test_outputs_and_history_lie_beside_the_projects_file() -> None:
    project = Project(name="digits", file=Path("here/project.toml"), steps=())
    assert project.folder == Path("here") / FOLDER


def test_a_run_is_the_same_after_a_way_through_json() -> None:
    step = StepRun(
        step="train", command="train", status="failed", key="ab", rests_on={"option epochs": "5"},
        words=("tfdyno", "train"), output="outputs/train-ab", error="no.", exit_code=3,
        why="option epochs 4 → 5", duration_s=1.5,
    )  # fmt: skip
    run = ProjectRun(id="1", project="digits", status="failed", steps=(step,))
    assert from_json(to_json(run), ProjectRun) == run


def test_a_step_of_an_older_version_is_read_with_what_was_not_known_then() -> None:
    told = b'{"step": "train", "command": "train", "status": "reused"}'
    found = from_json(told, StepRun)
    assert (found.why, found.exit_code, found.rests_on) == ("", 0, {})


def test_findings_fail_a_step_unless_it_says_otherwise() -> None:
    assert not ProjectStep(name="train", command="train").allow_findings
