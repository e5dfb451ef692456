"""core.project_report: which steps a run came to."""

from __future__ import annotations

import pytest

from tfdyno.core.project.project import StepRun
from tfdyno.core.project.report import StepTold


@pytest.mark.parametrize(
    ("step", "reached"),
    [
        (StepRun(step="a", command="train", status="stopped"), False),
        (StepRun(step="a", command="train", status="running"), False),
        (StepRun(step="a", command="train", status="stopped", key="ab"), True),
        (StepRun(step="a", command="train", status="failed"), True),  # before its key was known
        (StepRun(step="a", command="train", status="reused", key="ab"), True),
    ],
)
def test_a_step_without_a_key_was_not_reached_unless_it_failed(
    step: StepRun, reached: bool
) -> None:
    assert StepTold(run=step).reached is reached
