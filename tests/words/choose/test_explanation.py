from __future__ import annotations

from dataclasses import replace

import pytest

from tfdyno.core.choose.explanation import Constant, Exchange, Factor, KernelPrice, Peak, Term
from tfdyno.words.choose import explanation as words

CONVOLUTION = KernelPrice(
    kind="convolution",
    dtype="f16",
    direction="weight_gradient",
    phase="backward",
    shape="",
    route="product",
    dims={
        "n": (64,), "cin": (64,), "cout": (128,), "groups": (1,), "window": (3, 3),
        "stride": (2, 2), "input": (56, 56), "output": (28, 28),
    },
    layers=("a", "b", "c", "d"),
    count=4,
    time_s=1e-3,
    share_ratio=0.1,
    flops=2e11,
    traffic_bytes=4e8,
    smallest_bytes=1e8,
    largest_bytes=1e8,
    terms=(),
    peak_ratio=0.64,
    bandwidth_ratio=0.25,
    bound_by="compute",
)  # fmt: skip
LOOP = replace(
    CONVOLUTION, kind="loop", direction="", phase="update", route="", dims={}, flops=0.0,
    count=1, peak_ratio=None, bound_by="launch",
)  # fmt: skip
CONSTANT = Constant(
    name="e_loop", value=0.9, unit="share", fitted=True, identified=True, low=0.7, high=1.0,
    source="a fit",
)  # fmt: skip


@pytest.mark.parametrize(
    ("price", "told"),
    [
        (CONVOLUTION, "convolution 3×3, 64 → 128 channels, 28×28, stride 2, f16, weight gradient"),
        (LOOP, "element-wise kernels, f16, update"),
        (replace(LOOP, kind="reduce", phase="forward"), "reductions, f16, forward"),
        (
            replace(LOOP, kind="reduce", phase="forward", shape="rows"),
            "reductions along rows, f16, forward",
        ),
        (
            replace(LOOP, kind="gemm", phase="forward",
                    dims={"m": (8,), "n": (32,), "k": (16,), "batch": (12,)}),
            "matrix product, 12 of 8×16 by 16×32, f16, forward",
        ),
        (
            replace(CONVOLUTION, shape="winograd3", route="Winograd", direction="forward"),
            "convolution 3×3, 64 → 128 channels, 28×28, stride 2, f16, by Winograd's algorithm, "
            "forward, backward",
        ),
        (
            replace(CONVOLUTION, shape="grouped", dims={**CONVOLUTION.dims, "groups": (4,)}),
            "grouped convolution 3×3, 64 → 128 channels, 28×28, stride 2, 4 groups, f16, "
            "weight gradient",
        ),
        (
            replace(LOOP, kind="window", dims={"window": (1, 2, 2, 1), "stride": (1, 2, 2, 1)}),
            "pooling, windows of 1×2×2×1, f16, update",
        ),
    ],
)  # fmt: skip
def test_the_title_says_what_is_launched(price: KernelPrice, told: str) -> None:
    assert words.title(price) == told


def test_a_formula_can_be_worked_out_from_its_text() -> None:
    term = Term(
        cause="memory",
        amount=4e9,
        unit="B",
        more=(Factor(name="x", constant="graph_fusion_train", factor_ratio=1.5),),
        peak="bandwidth",
        rate_per_s=1e12,
        shares=(Factor(name="y", constant="e_loop", factor_ratio=0.75),),
        each_s=0.0,
        each="",
        time_s=4e9 * 1.5 / (1e12 * 0.75),
    )
    told = "4 GB × 1.50 graph_fusion_train / (1 TB/s × 0.750 e_loop) = 8 ms"
    assert words.formula(term) == told
    launches = replace(
        term, cause="launch", amount=1200.0, unit="launches", more=(), peak="", shares=(),
        each_s=2e-6, each="t_launch", time_s=2.4e-3,
    )  # fmt: skip
    assert words.formula(launches) == "1,200 × 2 µs t_launch = 2.40 ms"
    tiles = Factor(name="part-filled tiles", constant="", factor_ratio=2.0)
    assert " × 2 part-filled tiles / (" in words.formula(replace(term, more=(tiles,)))


def test_work_and_utilisation() -> None:
    assert words.work(CONVOLUTION) == "4 launches, 200 GFLOP, 400 MB (100 MB each)"
    assert words.work(LOOP) == "1 launch, 400 MB"
    spread = replace(CONVOLUTION, smallest_bytes=5e7)
    assert words.work(spread).endswith("(50 MB to 100 MB each)")
    assert words.reached(CONVOLUTION) == (
        "64% of the peak and 25% of the bandwidth; held by arithmetic"
    )
    assert words.reached(LOOP) == "25% of the bandwidth; held by launching"
    assert "(Winograd multiplies less)" in words.reached(replace(CONVOLUTION, route="Winograd"))


def test_layers_beyond_the_first_are_counted() -> None:
    assert words.layers(CONVOLUTION, 3) == "a, b, c and 1 more"
    assert words.layers(CONVOLUTION, 4) == "a, b, c, d"
    assert words.layers(replace(CONVOLUTION, layers=()), 3) == "none of the model's"


def test_a_peak_is_told_as_its_product() -> None:
    peak = Peak(
        name="fp16_tensor", rate_per_s=65e12 * 0.5, unit="FLOP", sm_count=40,
        flops_per_clock=1024.0, clock_hz=1.59e9, held_ratio=0.5, held_source="x", source="y",
    )  # fmt: skip
    told = "32.5 TFLOP/s = 40 SMs × 1,024 FLOP a clock × 1.59 GHz × 0.500 held under load"
    assert words.peak(peak) == told
    assert words.peak(replace(peak, sm_count=0, unit="B", rate_per_s=3.2e11)) == "320 GB/s"


@pytest.mark.parametrize(
    ("changes", "origin"),
    [
        ({}, "fitted"),
        ({"identified": False}, "at its bound"),
        ({"fitted": False}, "taken"),
    ],
)
def test_a_constant_says_where_it_comes_from(changes: dict[str, bool], origin: str) -> None:
    assert words.origin(replace(CONSTANT, **changes)) == origin  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("number", "unit", "told"),
    [
        (0.9, "share", "0.900"),
        (8e-6, "s per kernel", "8 µs"),
        (25e6, "bytes", "25 MB"),
        (2.3e-16, "share of the backward pass", "0"),
    ],
)
def test_a_value_is_told_in_the_unit_that_reads_best(number: float, unit: str, told: str) -> None:
    assert words.value(replace(CONSTANT, value=number, unit=unit)) == told


def test_an_exchange_shows_every_number_of_its_sum() -> None:
    one = Exchange(
        link="pcie3-x16", replicas=4, nodes=1, network_latency_s=0.0,
        payload_bytes=1e8, bus_bytes_per_s=1e10,
        shares=(Factor(name="x", constant="allreduce_pcie", factor_ratio=0.5),), sent_s=0.03,
        bucket_bytes=2.5e7, latency_s=1e-5, hops_s=2.4e-4, hidden_s=0.0, waiting_s=0.01,
        start_s=0.002, whole_s=0.04224, exposed_s=0.04224, constants=(), source="",
    )  # fmt: skip
    assert words.exchange(one) == (
        "6/4 × 100 MB / (10 GB/s × 0.500 allreduce_pcie of pcie3-x16) = 30 ms; 4 buckets × 6 hops "
        "× 10 µs = 240 µs; waiting for the slowest card 10 ms, until all hosts start 2 ms; "
        "the backward pass hides up to 0 µs, so 42.2 ms delay the step"
    )
    wide = replace(one, replicas=16, nodes=4, network_latency_s=5e-6)
    assert "4 buckets × (6 hops × 10 µs + 4 hops × 5 µs) =" in words.exchange(wide)
    alone = replace(one, replicas=4, nodes=4, network_latency_s=5e-6)
    assert "4 buckets × 4 hops × 5 µs =" in words.exchange(alone)


def test_a_source_is_told_once() -> None:
    assert words.numbered(["b", "a", "b"]) == {"b": 1, "a": 2}
