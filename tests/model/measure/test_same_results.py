"""Whether two backends compute the same: figures worked by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.measurements import TASK, measurement, run

from tfdyno.core.measure.measurement import FirstResults, Measurement
from tfdyno.model.measure.comparison import compare
from tfdyno.model.measure.same_results import same_results, spread_ratio

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STEPS = (1, 2)
NOT_EQUAL = (
    "Nothing proves that both backends compute the same: from the same weights their first losses "
    "lie 2.50 % apart, and 0.200 % is allowed"
)


def side(
    backend: str,
    values: Sequence[Sequence[float]],
    *,
    session: str = "one",
    level_s: float = 0.1,
    task: Mapping[str, object] | None = None,
    **first: Any,
) -> Measurement:
    """A measurement with these first losses of each run."""
    given = replace(TASK, backend=backend, **(task or {}))  # type: ignore[arg-type]
    base = replace(measurement([], session=session), task=given)
    second = backend == "jax"
    runs = [
        run([level_s] * 3, order=2 * place + (place % 2 != second),
            first=replace(FirstResults(steps=STEPS, values=tuple(losses)), **first))
        for place, losses in enumerate(values)
    ]  # fmt: skip
    return replace(base, runs=tuple(runs))


def test_one_backend_needs_no_proof() -> None:
    a = side("tensorflow", [(2.0, 1.5)] * 3)
    assert same_results(a, side("tensorflow", [(3.0, 2.5)] * 3)) is None
    assert compare(a, side("tensorflow", [(3.0, 2.5)] * 3)).same is None


def test_the_spread_is_the_difference_over_the_largest() -> None:
    assert spread_ratio([2.0, 1.95]) == pytest.approx(0.025)
    assert spread_ratio([-4.0, -3.0, -3.5]) == 0.25
    assert spread_ratio([0.0, 0.0]) == 0.0


def test_equal_first_losses_prove_it_and_stand_in_the_answer() -> None:
    a = side("tensorflow", [(2.0, 1.5)] * 3)
    found = compare(a, side("jax", [(2.0, 1.5015)] * 3, level_s=0.05))
    assert found.verdict == "faster"
    assert found.same
    assert found.same.kind == "steps"
    assert found.same.difference_ratio == pytest.approx(0.0015 / 1.5015)
    assert found.reason.endswith(
        "Both backends learn the same from the same weights and batches: after step 2 the loss is "
        "1.5000 on TensorFlow and 1.5015 on JAX."
    )


def test_losses_that_differ_are_no_comparison() -> None:
    a, b = side("tensorflow", [(2.0, 1.5)] * 3), side("jax", [(1.95, 1.5)] * 3, level_s=0.05)
    found = compare(a, b)
    assert (found.verdict, found.ratio) == ("not_comparable", 0.0)
    assert found.reason == f"{NOT_EQUAL}; their batches may differ: --data synthetic gives both " \
                           "the same one."  # fmt: skip


def test_one_run_that_differs_is_enough_to_refuse() -> None:
    a = side("tensorflow", [(2.0, 1.5)] * 3)
    b = side("jax", [(2.0, 1.5), (2.0, 1.5), (1.95, 1.5)])
    same = same_results(a, b)
    assert same
    assert same.kind == "not_proven"


def test_mixed_precision_may_lie_further_apart() -> None:
    mixed = {"policy": "mixed_bfloat16"}
    a = side("tensorflow", [(2.0, 1.5)] * 3, task=mixed)
    same = same_results(a, side("jax", [(1.97, 1.5)] * 3, task=mixed))
    assert same
    assert (same.kind, same.tolerance_ratio) == ("steps", 0.02)


def test_layers_that_draw_are_told_and_the_loss_without_them_counts() -> None:
    drop: dict[str, Any] = {"random_layers": ("dropout",)}
    a = side("tensorflow", [(2.3, 1.8)] * 3, evaluated=1.208, **drop)
    same = same_results(a, side("jax", [(2.6, 2.1)] * 3, evaluated=1.209, **drop))
    assert same
    assert same.kind == "at_rest"
    assert same.text == (
        "Their losses while training cannot be compared exactly: dropout draws other random "
        "numbers on each backend. Without them the first batch has the loss 1.2080 on TensorFlow "
        "and 1.2090 on JAX, from the same weights; their gradients were not compared."
    )


def test_layers_that_draw_excuse_no_other_loss_at_rest() -> None:
    drop: dict[str, Any] = {"random_layers": ("dropout",)}
    a = side("tensorflow", [(2.3, 1.8)] * 3, evaluated=1.2, **drop)
    for other in (1.17, None):  # 2.5 % apart, and not known
        same = same_results(a, side("jax", [(2.6, 2.1)] * 3, evaluated=other, **drop))
        assert same
        assert same.kind == "not_proven"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"session": "two"}, "they were not measured in turns from the same weights"),
        ({"task": {"batch_size": 32}}, "their batches differ (64 and 32)"),
        ({"steps": ()}, "a run on JAX told no loss that is a number"),
        ({"steps": (8, 16)}, "they told no loss after the same number of steps"),
    ],
)
def test_without_common_losses_it_says_why(changes: dict[str, Any], why: str) -> None:
    a = side("tensorflow", [(2.0, 1.5)] * 3)
    same = same_results(a, side("jax", [(2.0, 1.5)] * 3, **changes))
    assert same
    assert same.text == f"Nothing proves that both backends compute the same: {why}."


def test_a_forward_pass_is_proven_by_what_it_gives() -> None:
    infer = {"mode": "infer"}
    a = side("tensorflow", [(0.5,)] * 3, task=infer, steps=(1,))
    same = same_results(a, side("jax", [(0.5,)] * 3, task=infer, steps=(1,)))
    assert same
    assert same.text == (
        "Both backends give the same for the first batch from the same weights: its mean size is "
        "0.50000 on TensorFlow and 0.50000 on JAX."
    )
