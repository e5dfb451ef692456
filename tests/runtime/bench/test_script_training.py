"""Scripts run up to the training that is looked at, however they come to it and leave it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.benches import MODEL
from tests.runtime.looks import Looks, Training, facts_of

pytestmark = pytest.mark.tf
RUNS = {
    "misses": Training(code=MODEL + "h = model().fit(x, y)\nprint(h.history['nothing of it'])\n"),
    "second": Training(code=MODEL + "model().evaluate(x, y)\nmodel().fit(x, y, batch_size=50)\n"),
    "never": Training(code=MODEL + "model()\n"),
    "before": Training(code=MODEL + "open('not there.csv')\nmodel().fit(x, y)\n"),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return Looks(tmp_path_factory.mktemp("script"), RUNS)


def test_what_a_script_misses_after_its_training_does_not_matter(found: dict[str, Any]) -> None:
    assert facts_of(found["misses"]).steps_seen > 1


def test_calls_before_the_training_are_left_out_and_told(found: dict[str, Any]) -> None:
    seen = facts_of(found["second"])
    assert seen.batch_size == 50
    assert "Left out of the script: evaluate." in seen.notes


def test_a_script_that_never_trains_is_refused_with_what_it_did(found: dict[str, Any]) -> None:
    text = found["never"]["refused"]
    assert "has no call 1 of fit" in text
    assert "without a step of a loop" in text


def test_a_script_that_fails_before_its_training_is_told_with_its_line(
    found: dict[str, Any],
) -> None:
    assert "not there.csv" in found["before"]["refused"]
