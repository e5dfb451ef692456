from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.advice import estimate, exactly

from tfdyno.model.time.sharding import KINDS, bubble_ratio, fewest_that_fit, planned

if TYPE_CHECKING:
    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.sharding import ShardingKind, ShardingPlan

GIB = 2.0**30


def large(usable_gib: float = 24.0) -> Estimate:
    """16 GiB of states, 16 of activations, 1 of context: 33 GiB on one card."""
    parts = {"weights": 4 * GIB, "gradients": 4 * GIB, "optimizer": 8 * GIB,
             "activations": 16 * GIB, "context": GIB}  # fmt: skip
    return estimate(
        batch_size=64,
        step_s=exactly(1.0),
        memory_parts_bytes=parts,
        device_memory_bytes=exactly(33 * GIB),
        usable_memory_bytes=usable_gib * GIB,
        fits="no",
    )


def over(replicas: int, bytes_per_s: float) -> dict[ShardingKind, ShardingPlan]:
    return {kind: planned(large(), kind, replicas, bytes_per_s) for kind in KINDS}


def test_memory_is_divided_as_the_papers_say() -> None:
    """By hand, on two cards: what is kept whole, and half of the rest."""
    plans = over(2, 1e12)
    held = {kind: plan.device_memory_bytes / GIB for kind, plan in plans.items()}
    assert held["data parallel"] == pytest.approx(17 + 16 / 2)
    assert held["optimizer state"] == pytest.approx(9 + (8 + 16) / 2)
    assert held["all states"] == pytest.approx(1 + 32 / 2)
    assert held["tensor parallel"] == pytest.approx(1 + 32 / 2)
    assert held["pipeline"] == pytest.approx(1 + 32 / 2)


def test_time_is_compute_shared_and_what_is_sent() -> None:
    """On two cards a ring sends every byte once; 4 GiB at 4 GiB/s take a second."""
    plans = over(2, 4 * GIB)
    assert plans["data parallel"].step_s.best == pytest.approx(0.5 + 1.0)
    assert plans["optimizer state"].step_s.best == pytest.approx(0.5 + 1.0)
    assert plans["all states"].step_s.best == pytest.approx(0.5 + 1.5)
    assert plans["tensor parallel"].step_s.best == pytest.approx(0.5 + 4.0)
    assert plans["pipeline"].step_s.best == pytest.approx(0.5 / (1 - 1 / 9))


@pytest.mark.parametrize(
    ("stages", "micro_batches", "share"), [(1, 4, 0.0), (4, 1, 0.75), (4, 16, 3 / 19)]
)
def test_the_bubble_of_a_pipeline(stages: int, micro_batches: int, share: float) -> None:
    assert bubble_ratio(stages, micro_batches) == pytest.approx(share)


def test_the_smallest_number_that_holds_the_model_is_named() -> None:
    found = fewest_that_fit(large(20.0), dict.fromkeys((2, 4, 8), 1e11))
    assert [(plan.kind, plan.replicas) for plan in found if plan.kind == "optimizer state"] == [
        ("optimizer state", 4)
    ]
    whole = ("all states", "tensor parallel", "pipeline")
    assert {plan.replicas for plan in found if plan.kind in whole} == {2}
    assert all(plan.fits for plan in found)
    assert fewest_that_fit(large(1.0), dict.fromkeys((2, 4, 8), 1e11)) == ()


def test_only_ways_that_share_out_samples_need_as_many_of_them() -> None:
    one = replace(large(20.0), batch_size=1)
    found = fewest_that_fit(one, dict.fromkeys((2, 4, 8), 1e11))
    assert {plan.kind for plan in found} == {"tensor parallel", "pipeline"}


def test_a_pipeline_has_no_more_micro_batches_than_samples_and_says_how_many() -> None:
    plans = {
        size: planned(replace(large(), batch_size=size), "pipeline", 4, 1e12) for size in (1, 6, 64)
    }
    assert [plan.formula.partition(", m = ")[2] for plan in plans.values()] == ["1", "6", "16"]
    assert plans[1].step_s.best == pytest.approx(1.0)  # one sample passes the stages in turn
    assert plans[6].step_s.best == pytest.approx(0.25 / (6 / 9))


def test_tensor_parallel_names_what_divides_its_activations() -> None:
    plans = over(2, 1e12)
    assert "Korthikanti" in plans["tensor parallel"].source
    assert "rough" in plans["tensor parallel"].formula


def test_numbers_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="stages and micro_batches >= 1"):
        bubble_ratio(0, 1)


@given(st.integers(2, 63), st.floats(1e8, 1e12))
def test_more_cards_never_hold_more(replicas: int, rate: float) -> None:
    few, many = over(replicas, rate), over(replicas + 1, rate)
    for less, more in zip(few.values(), many.values(), strict=True):
        assert more.device_memory_bytes <= less.device_memory_bytes


@given(st.integers(2, 64), st.floats(1e8, 1e12), st.floats(1.0, 10.0))
def test_more_bandwidth_is_never_slower(replicas: int, rate: float, more: float) -> None:
    slow, fast = over(replicas, rate), over(replicas, rate * more)
    for one, two in zip(slow.values(), fast.values(), strict=True):
        assert two.step_s.best <= one.step_s.best
