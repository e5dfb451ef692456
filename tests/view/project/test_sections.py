"""view.project_sections: a section per step, whatever became of it."""

from __future__ import annotations

import pytest
from tests import past_runs
from tests.past_runs import STEPS, step_run
from tests.words.project.test_answers import recorded, step

from tfdyno.core.project.report import StepTold
from tfdyno.view.draw.svg import available
from tfdyno.view.project.sections import step_section

DRAWN = {"choose": 1, "look": 4, "export": 1, "phones": 1, "size": 1, "load": 2, "faster": 1}
"""Figures of a step's own page, without those of a bench, which come with its samples."""


@pytest.mark.parametrize("name", STEPS)
def test_a_step_has_its_figures_and_a_table_of_its_key_figures(name: str) -> None:
    one = recorded(name)
    (panel,) = step_section(one, {}).panels
    assert len(panel.figures) == DRAWN.get(name, 0)
    assert panel.table is not None
    assert len(panel.table.rows) == len(one.figures)
    assert panel.note == ""
    for drawing in panel.figures:
        assert bool(drawing.wide) == available()
        assert drawing.table.rows


def test_epochs_of_a_training_are_a_table_that_opens() -> None:
    (panel,) = step_section(recorded("train"), {}).panels
    assert panel.folded is not None
    title, table = panel.folded
    assert title == "Metrics of each epoch"
    assert [row[0] for row in table.rows] == list("123456")
    raw = past_runs.document("train") | {"history": {"loss": [1 / (n + 1) for n in range(99)]}}
    (long,) = step_section(step("train", raw), {}).panels
    assert long.folded is not None
    assert long.folded[0] == "Metrics of the last 30 epochs"
    assert [long.folded[1].rows[at][0] for at in (0, -1)] == ["70", "99"]


@pytest.mark.parametrize(
    ("told", "heading", "lead"),
    [
        (StepTold(run=step_run("train", status="waiting"), kind="train"),
         "train was not reached", "The run ended before it."),
        (StepTold(run=step_run("train", status="failed", error="exit code 3"), kind="train"),
         "train failed", "Exit code 3."),
        (StepTold(run=step_run("train"), kind="train", state="gone",
                  trouble="its output was deleted"),
         "train has no result to show", "Its output was deleted."),
        (StepTold(run=step_run("doctor"), document={"a": 1}, state="whole"), "Doctor is done", ""),
    ],
)  # fmt: skip
def test_a_step_without_an_answer_says_why(told: StepTold, heading: str, lead: str) -> None:
    (panel,) = step_section(told, {}).panels
    assert (panel.finding.heading, panel.finding.lead) == (heading, lead)
    assert panel.table is None
