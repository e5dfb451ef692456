"""Prices of primitive operations, worked out by hand for a card with round numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from tests.model.steps import Neutral, convolution, program

from tfdyno.catalog.gpus import find
from tfdyno.catalog.time_model import product_rates
from tfdyno.core.base.interval import Scaled
from tfdyno.core.choose.program import Kernel, KernelKind, Phase
from tfdyno.model.time import kernel_law
from tfdyno.model.time.graph_time import seconds, step_of, waits_of_sum, work_of

LATENCY_S = 1e-6
RESIDENT = 100 * 2048.0
"""Threads of a card with 100 multiprocessors."""
BANDWIDTH = 1e12
CARD = replace(find("h200-sxm-141gb"), sm_count=100, memory_bytes_per_s=BANDWIDTH)
BATCH = 10


def kernel(
    kind: KernelKind = "loop",
    *,
    dims: dict[str, int] | None = None,
    moved: float = 0.0,
    phase: Phase = "forward",
    count: int = 1,
) -> Kernel:
    return Kernel(
        kind=kind,
        dtype="f32",
        read_bytes=Scaled(fixed=moved),
        phase=phase,
        dims={name: (size,) for name, size in (dims or {}).items()},
        count=count,
    )


def priced(*kernels: Kernel, drains: bool = False, batch_size: int = BATCH, **constants: float
           ) -> Priced:  # fmt: skip
    found = Neutral({"load_latency": LATENCY_S, "overlap_power": 3.0} | constants)
    made = replace(program(*kernels), batch_size=BATCH)
    work = work_of(made, batch_size, CARD, tf32_allowed=True, rates=product_rates(), drains=drains)
    each = seconds(work, found)
    step = step_of(work, each, found)
    return Priced(
        compute_s=float(each.compute_s.sum()),
        memory_s=float(each.memory_s.sum()),
        launch_s=float(step.launch_s[0]),
        step_s=float(step.step_s[0]),
        device_s=float(step.device_s[0]),
        host_s=float(step.host_s[0]),
    )


class Priced(NamedTuple):
    """Seconds of a step of some kernels."""

    compute_s: float
    memory_s: float
    launch_s: float
    step_s: float
    device_s: float
    host_s: float


def test_where_a_thread_takes_one_element_its_wait_decides_not_the_bandwidth() -> None:
    elements = int(RESIDENT) * 50
    moved = elements * 8.0
    one = kernel(dims={"elements": elements, "per_thread": 1}, moved=moved)
    four = kernel(dims={"elements": elements, "per_thread": 4}, moved=moved)
    assert moved / BANDWIDTH > 50 * LATENCY_S  # 82 us: here the bandwidth is slower than 50 waits
    assert priced(one).memory_s == pytest.approx(moved / BANDWIDTH)
    assert priced(four).memory_s == pytest.approx(moved / BANDWIDTH)
    narrow = replace(one, read_bytes=Scaled(fixed=moved / 4))
    assert priced(narrow).memory_s == pytest.approx(50 * LATENCY_S)
    assert priced(replace(narrow, count=3)).memory_s == pytest.approx(150 * LATENCY_S)


def test_a_transpose_waits_for_the_places_that_its_threads_work_out() -> None:
    sizes = {"elements": int(RESIDENT) * 50, "per_thread": 1}
    turned = priced(kernel("transpose", dims=sizes, moved=1e3))
    assert turned.memory_s == pytest.approx(2.3 * 50 * LATENCY_S)
    assert priced(kernel(dims=sizes, moved=1e3)).memory_s == pytest.approx(50 * LATENCY_S)


def test_a_softmax_sums_its_rows_twice_and_then_moves_all_of_them() -> None:
    rows = {"outer": int(RESIDENT) // 32, "summed": 320, "inner": 1}
    moved = 320.0 * RESIDENT / 32 * 4
    plain = kernel("reduce", dims=rows, moved=moved)
    softmax = replace(plain, write_bytes=Scaled(fixed=moved))
    assert moved / BANDWIDTH < 10 * LATENCY_S  # a warp each, ten rounds
    assert priced(plain).memory_s == pytest.approx(10 * LATENCY_S)
    assert priced(softmax).memory_s == pytest.approx(20 * LATENCY_S + 2 * moved / BANDWIDTH)


@pytest.mark.parametrize(
    ("shape", "waits"),
    [
        # 512 columns are 16 blocks of 32: enough for TensorFlow, which then splits no rows
        ((1, 32 * 6272, 512), 6272.0),
        # 256 columns are 8 blocks: the rows go to 32 blocks each, 256 blocks of 1024 threads;
        # the card holds 200 of them at a time
        ((1, 32 * 32 * 49, 256), 49 * 256 / 200),
        ((1, 32 * 32 * 784, 64), 784.0),
        # 5 rows of blocks become 4, a power of two
        ((1, 32 * 5, 64), 32 * 5 / (32 * 4)),
        # up to 16 columns a warp holds several rows: four of them with 8 columns
        ((1, 4 * 32 * 32 * 7, 8), 7.0),
        # more than 4096 columns: one thread each
        ((1, 32, 8192), 32.0),
        ((1, 32, int(RESIDENT) * 2), 64.0),
        # between two axes that stay: one thread for each result
        ((100, 9, 64), 9.0),
        # few results of many each: 16 at a time, in passes; twice what the card holds, then 16^5
        ((2, 16**5, 1 << 4), 2 * 16**4 * 16 / RESIDENT + 5.0),
        ((2, 16 * 32, 16), 1.0 + 2.25),
        ((2, 16 * 32 - 1, 16), 16 * 32 - 1.0),
        # along rows: a warp each, 768 / 32 rounds; twice as many warps as the card holds
        ((int(RESIDENT) * 2 // 32, 768, 1), 2 * 24.0),
        ((64, 4096, 1), 4096 / (256 * 4)),
        # to one number
        ((1, 4096, 1), 4.0),
        ((1, 10_000_000, 1), 0.0),
    ],
)
def test_how_many_loads_a_sum_takes_one_after_the_other(
    shape: tuple[int, int, int], waits: float
) -> None:
    assert waits_of_sum(np.array([shape], dtype=float), RESIDENT) == pytest.approx([waits])


def test_a_sum_over_pieces_has_a_block_for_each_result() -> None:
    pieces = {"outer": 1, "summed": 256 * 16 * 50, "inner": 200, "scattered": 1}
    found = priced(kernel("reduce", dims=pieces))
    # two results for each of 100 multiprocessors, 50 times 16 loads; places take three waits
    assert found.memory_s == pytest.approx(3 * 2 * 50 * LATENCY_S)


def test_a_sum_over_more_samples_waits_longer() -> None:
    rows = kernel("reduce", dims={"outer": 1, "summed": 32 * 1000, "inner": 512})
    grows = replace(rows, dims_scaled=("summed",))
    times = [priced(one, batch_size=2 * BATCH) for one in (rows, grows)]
    assert [one.memory_s for one in times] == pytest.approx([1000e-6, 2000e-6])


def test_the_slower_of_device_and_host_sets_the_step() -> None:
    some = [kernel() for _ in range(10)]
    assert priced(*some, t_primitive=2e-6, host_primitive=5e-6).step_s == pytest.approx(50e-6)
    fast = priced(*some, t_primitive=9e-6, host_primitive=5e-6)
    assert fast.step_s == pytest.approx(90e-6)
    assert fast.launch_s == pytest.approx(90e-6)
    assert (fast.device_s, fast.host_s) == pytest.approx((90e-6, 50e-6))


def test_a_device_that_runs_empty_pays_the_host_of_the_update_apart() -> None:
    slow = kernel(moved=BANDWIDTH * 100e-6)
    updates = [kernel(phase="update") for _ in range(10)]
    joined, apart = (
        priced(slow, *updates, drains=drains, host_primitive=5e-6) for drains in (False, True)
    )
    assert joined.step_s == pytest.approx(100e-6)
    assert apart.step_s == pytest.approx(150e-6)


def test_time_steps_follow_each_other_and_cost_the_host_nothing_more() -> None:
    steps = kernel("recurrent", dims={"steps": 200}, moved=1e9, count=400)
    found = priced(steps, t_recurrent=10e-6, host_primitive=50e-6)
    assert (found.step_s, found.host_s) == pytest.approx((4e-3, 0.0))
    busy = replace(steps, dtype="f16", flops=Scaled(fixed=2e12))
    peak = CARD.rates.fp16_tensor_per_clock * CARD.sm_count * CARD.tensor_clock_hz
    large = next(
        one.peak_ratio
        for one in product_rates().rates
        if one.unit == "half" and "9.0 all" in one.cards
    )
    assert priced(busy, t_recurrent=10e-6).step_s == pytest.approx(4e-3 + 2e12 / (peak * large))


def test_library_calls_cost_what_they_cost_under_xla() -> None:
    made = replace(program(convolution(flops=1e9, traffic_bytes=2e4)), batch_size=BATCH)
    found = Neutral({"overlap_power": 3.0})
    work = kernel_law.work_of(made, BATCH, CARD, tf32_allowed=True, rates=product_rates())
    under_xla = kernel_law.seconds(work, found)
    mine = priced(*made.kernels)
    assert mine.compute_s == pytest.approx(float(under_xla.compute_s.sum()))
    assert mine.memory_s == pytest.approx(float(under_xla.memory_s.sum()))
    assert mine.compute_s > 0.0
    assert mine.memory_s > 0.0
