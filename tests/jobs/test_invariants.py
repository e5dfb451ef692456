"""What must hold for every card and setting, on one small traced model."""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tfdyno.api import estimate, trace

if TYPE_CHECKING:
    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.jobs.choose.trace import Traced

MODEL = f"{Path(__file__).parent.parent / 'data' / 'models' / 'small.py'}:convnet"


@cache
def traced(mode: str = "train") -> Traced:
    return trace(MODEL, mode="infer" if mode == "infer" else "train")


def estimates(mode: str = "train", **settings: Any) -> tuple[Estimate, ...]:
    settings = {"gpu": "t4", "batch_size": 256, "route": "quick", **settings}
    return estimate(traced(mode), **settings).estimates


def one(**settings: Any) -> Estimate:
    (found,) = estimates(**settings)
    return found


@pytest.mark.parametrize("mode", ["train", "infer"])
@pytest.mark.parametrize("execution", ["xla", "graph"])
def test_every_card_has_ordered_positive_finite_figures(mode: str, execution: str) -> None:
    found = estimates(mode, gpu="all", execution=execution)
    assert len(found) > 150
    for item in found:
        ranges = (item.step_s, item.samples_per_s, item.peak_memory_bytes,
                  item.device_memory_bytes, item.energy_j_per_step)  # fmt: skip
        for value in ranges:
            assert 0 < value.low <= value.best <= value.high < math.inf, item.gpu
        assert all(value >= 0 for value in item.terms_s.values()), item.gpu
        assert item.bound_by in item.terms_s
        assert 0 < item.mfu_ratio <= 1, item.gpu
        assert item.samples_per_s.best == pytest.approx(item.batch_size / item.step_s.best)


def test_a_larger_batch_needs_more_memory_and_more_time() -> None:
    found = [one(batch_size=size) for size in (1, 8, 64, 512, 4096)]
    assert all(each.peak_memory_bytes.low > 0 for each in found)
    for small, large in pairwise(found):
        assert large.device_memory_bytes.best > small.device_memory_bytes.best
        assert large.step_s.best >= small.step_s.best
        assert large.step_s.best / large.batch_size <= small.step_s.best / small.batch_size
        assert large.max_batch_size == small.max_batch_size


def test_the_largest_batch_fits_and_one_above_it_does_not() -> None:
    most = one().max_batch_size
    assert most is not None
    assert one(batch_size=most).fits != "no"
    beyond = one(batch_size=int(most * 1.02) + 1)
    assert beyond.device_memory_bytes.best > beyond.usable_memory_bytes


def test_more_replicas_serve_more_samples_but_never_more_than_their_number() -> None:
    for gpu in ("rtx-3090", "a100-sxm4-80gb"):
        found = estimates(gpu=gpu, replicas=(1, 2, 4, 8), execution="xla")
        for few, many in pairwise(found):
            assert many.samples_per_s.best > few.samples_per_s.best
            assert many.samples_per_s.best <= 2 * few.samples_per_s.best * 1.001
            assert many.global_batch_size == 2 * few.global_batch_size
        assert [item.terms_s["communication"] > 0 for item in found] == [False, True, True, True]


def test_newer_cards_of_a_line_are_quicker() -> None:
    line = ("t4", "l4", "a100-sxm4-80gb", "h100-sxm5-80gb", "b200-sxm-180gb")
    # where nothing is asked for, the newest runs without XLA, which its TensorFlow lacks for it
    found = estimates(gpu=",".join(line), batch_size=4096, execution="xla")
    times_s = [item.step_s.best for item in found]
    assert times_s == sorted(times_s, reverse=True)


def test_a_slice_is_slower_and_smaller_than_its_card() -> None:
    names = ("a100-sxm4-80gb", "a100-sxm4-80gb:3g.40gb", "a100-sxm4-80gb:1g.10gb")
    found = estimates(gpu=",".join(names), batch_size=4096)
    for whole, part in pairwise(found):
        assert part.step_s.best > whole.step_s.best
        assert part.usable_memory_bytes < whole.usable_memory_bytes
        assert (part.max_batch_size or 0) < (whole.max_batch_size or 0)


@pytest.mark.parametrize(
    ("gpu", "tf32_ratio"),
    [("a100-sxm4-80gb", 1.0), ("rtx-4090", 1.1)],  # on GeForce TF32 has the peak of float32
)
def test_half_precision_saves_memory_and_time(gpu: str, tf32_ratio: float) -> None:
    def made(precision: str) -> Estimate:
        settings: dict[str, Any] = {"gpu": gpu, "batch_size": 4096, "precision": precision}
        (found,) = estimate(MODEL, route="quick", **settings).estimates
        return found

    strict, tf32, half = made("float32"), made("tf32"), made("mixed_float16")
    assert half.step_s.best < min(tf32.step_s.best, strict.step_s.best)
    assert tf32.step_s.best <= tf32_ratio * strict.step_s.best
    assert half.peak_memory_bytes.best < strict.peak_memory_bytes.best
    assert strict.peak_memory_bytes.best == tf32.peak_memory_bytes.best


def test_the_forward_pass_alone_is_quicker_and_smaller() -> None:
    train, infer = one(), one(mode="infer")
    assert infer.step_s.best < train.step_s.best
    assert infer.device_memory_bytes.best < train.device_memory_bytes.best
    assert infer.flops_per_step < 0.5 * train.flops_per_step
    assert infer.memory_parts_bytes.get("optimizer", 0) == 0


def test_without_xla_a_step_takes_no_less_traffic_time() -> None:
    fused, graph = one(batch_size=4096, execution="xla"), one(batch_size=4096, execution="graph")
    assert graph.terms_s["memory"] >= fused.terms_s["memory"]
    assert graph.compile_s.best <= fused.compile_s.best
