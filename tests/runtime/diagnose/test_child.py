"""A whole look, in a child as users get it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from tests.runtime.forks import NO_GPU
from tests.runtime.looks import SHORT, WAITS, middle

from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import Workload
from tfdyno.core.messages.diagnose import LOOK, Limits, LookAtSteps
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.jobs.child.worker import run_child
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.runtime.diagnose.child import handle, used_cards

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.tf
def test_a_script_is_looked_at_in_a_child_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(WAITS + "model().fit(data)\n")
    began = time.monotonic()
    said: list[str] = []
    answer = run_child(
        LOOK,
        LookAtSteps(
            workload=parse_reference(f"{tmp_path}/train.py", mode="train"),
            recipe=Recipe(),
            limits=Limits(**SHORT),
        ),
        progress=said.append,
        timeout_s=300,
        env={**NO_GPU, "KERAS_BACKEND": "tensorflow"},
        hide_gpu=False,
    )
    facts, steady = answer.facts, answer.steady
    assert facts
    assert steady
    assert answer.software
    assert middle(facts.step_s) > 0.010
    assert facts.host.cpus >= 1
    assert facts.variable_count >= 2
    assert answer.software["device"] == facts.device == "cpu"
    assert began < steady.began_s < steady.ended_s < time.monotonic()
    assert steady.ended_s - steady.began_s >= 0.9 * sum(facts.step_s)
    assert steady.cards == ()
    assert said[0] == "importing TensorFlow"


def test_what_is_no_training_is_refused() -> None:
    workload = Workload(reference="train.py", kind="script", mode="infer")
    request = LookAtSteps(workload=workload, recipe=Recipe())
    with pytest.raises(UsageError, match="diagnose looks at a training"):
        handle(request, lambda _message: None)


FOUR = [f"/physical_device:GPU:{number}" for number in range(4)]


@pytest.mark.parametrize(
    ("visible", "variables", "replicas", "used"),
    [
        (FOUR, ["GPU:0"], 1, [0]),
        (FOUR, ["CPU:0"], 1, [0]),  # what computes is the first all the same
        (FOUR, ["GPU:2", "CPU:0"], 1, [2]),
        (FOUR, ["GPU:0", "GPU:3"], 1, [0, 3]),  # layers on two of them
        (FOUR, ["GPU:0"], 2, [0, 1]),  # mirrored: its first part is told
        (FOUR, ["GPU:2"], 2, [2, 3]),
        (FOUR[2:], ["GPU:0"], 1, [2]),  # the script took the third
        (FOUR[:2], ["GPU:0"], 0, [0, 1]),  # divided into logical ones
        (FOUR[:1], [], 8, [0]),
        ([], ["CPU:0"], 1, []),
    ],
)
def test_cards_of_a_training(
    visible: list[str], variables: list[str], replicas: int, used: list[int]
) -> None:
    assert used_cards(visible, variables, replicas) == tuple(used)
