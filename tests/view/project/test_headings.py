"""view.project_headings: a project in one line, a section in few words."""

from __future__ import annotations

from typing import Any

import pytest
from tests.past_runs import STEPS, step_run
from tests.words.project.test_answers import recorded, step, told

from tfdyno.core.project.report import StepTold
from tfdyno.view.project.headings import heading, headline
from tfdyno.words.project.answers import head


def test_the_headline_has_cost_speed_and_service() -> None:
    run = told(*map(recorded, STEPS))
    said = headline(run).split("; ")
    assert said[0] == "Train on Tesla T4 for under $0.01"
    assert said[1].endswith("samples/s measured on a CPU")
    assert said[2] == "3.13x by tuning"
    assert said[3] == "serves 925 requests/s within 50 ms"
    assert [name for name, _ in head(run)] == list(STEPS)


def test_a_run_that_failed_says_so_first() -> None:
    failed = StepTold(run=step_run("train", status="failed"), kind="train")
    assert headline(told(recorded("choose"), failed)) == "shapes: train failed"
    stopped = StepTold(run=step_run("train", status="stopped"), kind="train")
    assert headline(told(stopped)) == "shapes: train was stopped"
    assert headline(told(step("x", {}, "doctor"))) == "shapes: 1 step"
    assert head(told(recorded("choose"), failed))[-1][0] == "choose"


@pytest.mark.parametrize(
    ("proof", "words"),
    [
        ({"ratio": 2.6, "interval": [1.5, 4.5], "kept": True}, "2.60x by tuning"),
        ({"ratio": 2.6, "interval": [1.5, 4.5], "kept": False}, "shapes: 1 step"),
        ({"ratio": 1.1, "interval": [0.9, 1.3], "kept": True}, "shapes: 1 step"),
        ({"ratio": 1.1, "kept": True}, "shapes: 1 step"),
    ],
)
def test_only_a_proven_tuning_is_in_the_headline(proof: dict[str, Any], words: str) -> None:
    one = step("faster", {"trials": [{}], "proof": proof, "best": {"changes": {"a": 1}}}, "tune")
    assert headline(told(one)) == words
    assert heading(one).startswith("Tuning gained") is (words[0] == "2")


def test_a_section_is_headed_in_few_words() -> None:
    assert heading(recorded("choose")).startswith("Rent one T4 on spot: about 3.1 minutes")
    assert heading(recorded("train")) == "Accuracy is 100 % at the end"
    assert heading(recorded("keep")) == ""
