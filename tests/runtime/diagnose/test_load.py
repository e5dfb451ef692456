"""Workloads of every kind, run up to the training that is looked at."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.looks import START, STEP, Looks, Training, facts_of

pytestmark = pytest.mark.tf
RUNS = {
    "second": Training(
        code=START
        + "model().fit(x, y, epochs=2)\n"
        + "m = model()\n"
        + "try:\n"
        + "    m.fit(x, y, batch_size=50)\n"
        + "except Exception:\n"
        + "    pass\n"
        + "raise RuntimeError('nothing after fit runs')\n"
    ),
    "none": Training(code="print('hello')\n"),
    "function": Training(code=START + "def pair():\n    return model(), (x, y)\n", function="pair"),
    "recipe": Training(
        code=START + "model().fit(x, y)\n", recipe={"batch_size": 10, "execution": "xla"}
    ),
    "broken": Training(code=START + "model().fit(x, y[:3])\n"),
    "loop_recipe": Training(
        code=START + STEP + "while True:\n    step(x, y)\n", recipe={"batch_size": 8}
    ),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return Looks(tmp_path_factory.mktemp("load"), RUNS)


def test_nothing_after_the_fit_that_is_looked_at_runs(found: dict[str, Any]) -> None:
    facts = facts_of(found["second"])
    assert (facts.batch_size, facts.epochs) == (32, 2)


def test_a_script_without_a_training_is_refused(found: dict[str, Any]) -> None:
    assert found["none"]["exit_code"] == 2
    assert "has no call 1 of fit: it ended without fit" in found["none"]["refused"]


def test_a_function_that_returns_a_model_and_its_data_is_trained(found: dict[str, Any]) -> None:
    facts = facts_of(found["function"])
    assert facts.input
    assert (facts.input.kind, facts.input.samples_per_epoch) == ("arrays", 7 * 32)
    assert facts.steps_per_epoch == 7  # 200 samples in batches of 32


def test_a_recipe_reaches_the_training(found: dict[str, Any]) -> None:
    facts = facts_of(found["recipe"])
    assert (facts.batch_size, facts.execution) == (10, "xla")


def test_a_fit_that_fails_is_refused_with_its_reason(found: dict[str, Any]) -> None:
    assert found["broken"]["exit_code"] == 2
    assert "train.py failed" in found["broken"]["refused"]


def test_what_only_the_script_can_set_is_refused(found: dict[str, Any]) -> None:
    expected = "batch_size cannot be set for a loop of the script's own; set it in the script."
    assert found["loop_recipe"]["refused"] == expected
