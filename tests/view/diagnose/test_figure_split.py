"""The bars of a step: before and after on one axis, computing by class."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.view.diagnoses import AFTER, DIAGNOSIS, PROOF, fixed, looked_again, told

from tfdyno.core.measure.bottleneck import SPLIT_PARTS, StepDiagnosis
from tfdyno.core.measure.step_facts import OPERATION_CLASSES
from tfdyno.view.diagnose.figure_split import GROUPS, compute_figure, kept_step_s, split_figure
from tfdyno.words.diagnose.steps import class_words


def test_every_part_of_a_split_has_a_colour() -> None:
    assert sorted(part for _, _, parts in GROUPS for part in parts) == sorted(SPLIT_PARTS)


def test_parts_add_up_to_the_step_in_words_and_numbers() -> None:
    found = split_figure(told())
    assert found.label == (
        "Stacked bars of one step, whose parts add up to it; a step takes 418 ms: input 61%, "
        "compute 28%, host 9% and launch 2%."
    )
    assert [key.text for key in found.key] == [
        "computing",
        "waiting for data",
        "Python and launching",
    ]
    assert found.table.headings == ("Part", "As it is", "Share")
    assert found.table.rows[0] == ("input", "255 ms", "61%")
    assert found.table.rows[-1] == ("whole step", "418 ms", "100%")


def test_after_a_fix_both_steps_stand_on_one_axis() -> None:
    found = split_figure(looked_again())
    assert "with what was kept 173 ms: compute 68%, host 22%, input 5% and launch 5%" in found.label
    assert found.table.rows[-1] == ("whole step", "418 ms", "100%", "173 ms", "100%")
    assert found.wide.count(">418 ms<") == found.wide.count(">173 ms<") == 1


def test_where_nobody_looked_again_only_the_measured_time_is_drawn() -> None:
    found = split_figure(fixed())
    assert kept_step_s(fixed()) == PROOF.after_s == 0.173
    assert found.key[-1].text == "measured as a whole"
    assert found.label.endswith("with what was kept 173 ms, measured as a whole.")
    assert found.table.rows[0] == ("input", "255 ms", "61%", "–")
    assert kept_step_s(told()) == 0.0


def test_parts_of_a_record_are_not_called_computing() -> None:
    unseen = StepDiagnosis(title="x", step_s=0.1, split_s={"unseen": 0.1}, compute_s={},
                           primary=DIAGNOSIS.primary, findings=DIAGNOSIS.findings)  # fmt: skip
    assert [key.text for key in split_figure(told(unseen)).key] == ["not looked into"]


def test_computing_is_told_the_longest_class_first() -> None:
    found = compute_figure(DIAGNOSIS)
    assert found
    assert found.table.rows == (
        ("convolutions", "100 ms", "85%"), ("matrix products", "17.0 ms", "15%"),
    )  # fmt: skip
    assert compute_figure(replace(AFTER, compute_s={})) is None


@pytest.mark.parametrize("name", OPERATION_CLASSES)
def test_every_class_has_words(name: str) -> None:
    assert "_" not in class_words(name)
