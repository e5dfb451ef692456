"""What was measured, in words: what needs no run of its own (test_bench.py has the rest)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from tfdyno.runtime.bench.task import loss_of

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value


def outcome(tracker: object) -> Value:
    return SimpleNamespace(model=SimpleNamespace(_loss_tracker=tracker))


def test_the_loss_of_a_model_that_keeps_none_is_zero() -> None:
    assert loss_of(outcome(None)) == 0.0


def test_the_loss_is_the_mean_over_the_steps_so_far() -> None:
    assert loss_of(outcome(SimpleNamespace(result=lambda: 0.25))) == 0.25


def test_a_loss_that_cannot_be_read_is_no_failure() -> None:
    def spread() -> float:
        raise ValueError("it is on two replicas")

    assert loss_of(outcome(SimpleNamespace(result=spread))) == 0.0
