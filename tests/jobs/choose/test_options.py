"""jobs/_options: what computing again saves and costs, from real traces."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest

from tfdyno.catalog.gpus import find
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.choose.options import Way, computing_once
from tfdyno.jobs.choose.predict import Predictor, StepSettings, predictor_for
from tfdyno.jobs.choose.reference import parse_reference

MODELS = Path(__file__).parents[2] / "data" / "models" / "tower.py"
CARD = find("gtx-1050")
BATCH = 256
pytestmark = pytest.mark.tf

# By hand, multiply-adds of a sample: 64 x 64 places, 3 x 3 windows, 32 channels out; the first
# convolution has 3 channels in, the twelve of the blocks 32; then 32 x 10.
FIRST, BLOCKS, LAST = 64 * 64 * 9 * 3 * 32, 12 * 64 * 64 * 9 * 32 * 32, 320


@lru_cache
def traced(name: str = "tower", remat: str = "", execution: str = "xla") -> Predictor:
    workload = replace(parse_reference(f"{MODELS}:{name}"), remat=remat)
    return predictor_for(
        workload, StepSettings(execution=execution), batch_size=BATCH, progress=silent
    )


def ways(name: str = "tower", execution: str = "xla") -> tuple[Way, Way]:
    """Without and with blocks that are computed again."""
    plain, again = traced(name, "", execution), traced(name, "blocks", execution)
    base = Way(predictor=plain, gpu=CARD, share=BATCH)
    return base, replace(base, predictor=again, plain=plain, once=computing_once(again))


def library_flops(predictor: Predictor, *phases: str) -> float:
    kernels = predictor.traced.program.kernels
    return sum(k.flops.per_sample for k in kernels if k.kind in ("convolution", "gemm")
               and (not phases or k.phase in phases))  # fmt: skip


def test_a_trace_tells_what_is_computed_again_from_what_was_there_before() -> None:
    plain, again = traced(), traced("tower", "blocks")
    assert again.traced.trace.path == "tensorflow"
    assert library_flops(plain, "recompute") == 0.0
    once = library_flops(again) - library_flops(again, "recompute")
    assert once == pytest.approx(library_flops(plain), rel=0.01)
    assert library_flops(plain) == pytest.approx(2 * (2 * FIRST + 3 * (BLOCKS + LAST)), rel=0.01)
    # at most the whole forward pass is computed again, and most of the blocks are
    assert 2 * 0.6 * BLOCKS < library_flops(again, "recompute") <= 2 * (FIRST + BLOCKS)


@pytest.mark.parametrize("execution", ["xla", "graph"])
def test_computing_again_takes_less_memory_and_more_time(execution: str) -> None:
    base, again = (way.option(BATCH, 1) for way in ways(execution=execution))
    assert again.device_memory_bytes.best < 0.75 * base.device_memory_bytes.best
    assert (base.remat, again.remat) == ("", "blocks")
    assert base.recompute_ratio == 1.0
    assert 1.1 < again.recompute_ratio < 1.5
    ratio = again.update_s.best / base.update_s.best
    assert ratio == pytest.approx(again.recompute_ratio)


def test_another_order_of_the_kernels_is_not_what_computing_again_is_worth() -> None:
    # stack holds next to no activations: its plan gets smaller by the order of updates alone
    base, again = (way.option(BATCH, 1) for way in ways("stack"))
    plan = traced("stack").traced.program.buffers
    assert plan.reordering_saves_bytes(BATCH) > 0.1 * plan.peak_at(BATCH)
    saved = base.device_memory_bytes.best - again.device_memory_bytes.best
    assert saved < 0.03 * base.device_memory_bytes.best


def test_accumulation_keeps_the_sum_of_the_gradients() -> None:
    base = ways("stack")[0]
    whole, half = base.option(128, 1), base.option(128, 2)
    trace = base.predictor.traced.trace
    assert half.device_memory_bytes.best - whole.device_memory_bytes.best == pytest.approx(
        4 * trace.trainable_parameter_count
    )
    assert half.update_s.best == 2 * whole.update_s.best
    assert (half.changes, whole.changes) == (1, 0)


def test_the_splits_make_up_the_batch() -> None:
    found = ways()[0].splits()
    assert found[0] == (BATCH, 1)
    assert {size * parts for size, parts in found} == {BATCH}


def test_the_largest_that_fits_is_taken_in_as_few_parts_as_can_be() -> None:
    way = ways()[0]
    found = way.largest()
    assert found.fits
    assert found.batch_size * found.accumulation == BATCH
    assert not way.option(2 * found.batch_size, found.accumulation // 2).fits
