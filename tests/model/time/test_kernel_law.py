"""Kernels of today's XLA, priced by hand with round constants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.steps import Neutral, convolution, kernel, program

from tfdyno.catalog.gpus import find
from tfdyno.catalog.time_model import product_rates
from tfdyno.core.base.interval import Scaled
from tfdyno.core.choose.program import Kernel
from tfdyno.model.time.kernel_law import (
    INTEGER_LANES,
    LEAST_PART,
    Work,
    compute_constants,
    host_seconds,
    seconds,
    step_of,
    work_of,
)
from tfdyno.model.time.parts import memory_constant
from tfdyno.model.time.peaks import peak_flops_per_s

H200 = find("h200-sxm-141gb")
CUBES = {"overlap_power": 3.0}


def work(*kernels: Kernel, batch_size: int = 296, gpu: str = "h200-sxm-141gb") -> Work:
    return work_of(
        program(*kernels), batch_size, find(gpu), tf32_allowed=True, rates=product_rates()
    )


def product(m: int, n: int, k: int, dtype: str = "bf16", moved: float = 0.0) -> Kernel:
    return Kernel(
        kind="gemm",
        dtype=dtype,
        flops=Scaled(fixed=2.0 * m * n * k),
        read_bytes=Scaled(fixed=moved),
        dims={"m": (m,), "n": (n,), "k": (k,), "batch": (1,)},
    )


def test_a_kernel_that_moves_bytes_takes_them_over_the_share_and_the_floor() -> None:
    one = work(kernel("loop", traffic_bytes=4.8e9 / 296))
    found = seconds(one, Neutral(CUBES | {"e_loop": 0.5, "t_kernel": 2e-6}))
    # 4.8 GB at half of 4.8 TB/s are 2 ms
    assert float(found.memory_s[0]) == pytest.approx(2e-3)
    assert float(found.floor_s[0]) == pytest.approx(2e-6)
    assert float(found.compute_s[0]) == 0.0


def test_arithmetic_and_traffic_add_as_cubes_and_are_split_by_them() -> None:
    lanes = H200.sm_count * INTEGER_LANES * H200.boost_hz
    one = replace(
        kernel("loop"),
        flops=Scaled(fixed=lanes * 1e-3),
        read_bytes=Scaled(fixed=4.8e9 * 2),
        write_bytes=Scaled(),
    )
    found = seconds(work(one), Neutral(CUBES))
    body = (1.0**3 + 2.0**3) ** (1 / 3) * 1e-3  # 1 ms of arithmetic beside 2 ms of traffic
    assert float(found.total_s[0]) == pytest.approx(body)
    assert float(found.compute_s[0]) == pytest.approx(body / 9)


def test_a_part_that_is_next_to_nothing_has_no_line_of_its_own() -> None:
    lanes = H200.sm_count * INTEGER_LANES * H200.boost_hz
    one = replace(kernel("loop"), flops=Scaled(fixed=lanes * 1e-4), read_bytes=Scaled(fixed=4.8e9))
    found = seconds(work(one), Neutral(CUBES))
    assert LEAST_PART > (0.1**3) / (1 + 0.1**3)
    assert float(found.compute_s[0]) == 0.0


def test_a_large_product_reaches_the_measured_share_of_the_peak() -> None:
    found = seconds(work(product(8192, 8192, 8192)), Neutral(CUBES))
    peak = peak_flops_per_s(H200, "bf16_tensor")
    share = 2.0 * 8192**3 / peak / float(found.compute_s[0])
    assert 0.7 < share < 0.8  # 0.73 measured on H200, 0.75 on H100


def test_few_tiles_leave_most_of_a_card_idle() -> None:
    small, large = work(product(64, 64, 4096)), work(product(4096, 4096, 4096))
    rates = [2.0 * 64**2 * 4096 / float(small.compute_s[0]),
             2.0 * 4096**3 / float(large.compute_s[0])]  # fmt: skip
    assert rates[0] < rates[1] / 20


def test_a_convolution_is_the_product_that_it_is() -> None:
    # 3x3, 64 to 128 channels, 56x56 places of 32 samples: 100,352 x 128 by 576
    size = {"n": (32,), "cin": (64,), "cout": (128,), "groups": (1,), "window": (3, 3),
            "stride": (1, 1), "input": (56, 56), "output": (56, 56)}  # fmt: skip
    one = replace(convolution(flops=1.0, dtype="bf16"), dims=size, flops=Scaled(fixed=1.0))
    alike = product(32 * 56 * 56, 128, 576)
    assert work(one).compute_s == pytest.approx(work(alike).compute_s)


@pytest.mark.parametrize(("gpu", "dtype", "turned"), [
    ("a100-sxm4-40gb", "f32", True),  # TF32 with the channels first
    ("a100-sxm4-40gb", "f16", False),
    ("h200-sxm-141gb", "f32", False),  # XLA keeps channels last from 9.0 on
    ("v100-sxm2-16gb", "f32", False),  # no tensor cores: any order will do
])  # fmt: skip
def test_copies_into_another_order_are_those_of_tf32_before_hopper(
    gpu: str, dtype: str, turned: bool
) -> None:
    wide = convolution(flops=1e9, traffic_bytes=1e7, dtype=dtype, window=(3, 3))
    one = work(wide, gpu=gpu)
    assert one.classes[0].turned is turned
    assert np.isfinite(one.cuda_s[0]) == turned
    once, thrice = (
        float(seconds(one, Neutral(CUBES | {"turned": factor})).total_s[0]) for factor in (1.0, 3.0)
    )
    assert (thrice > once) is turned


def test_tf32_with_its_copies_is_never_slower_than_float32_on_the_cuda_cores() -> None:
    wide = convolution(flops=1e7, traffic_bytes=1e7, dtype="f32", window=(3, 3))
    made, constants = program(wide), Neutral(CUBES | {"turned": 3.0, "winograd3": 2.0})
    found = [
        seconds(
            work_of(made, 296, find("rtx-4090"), tf32_allowed=tf32, rates=product_rates()),
            constants,
        )
        for tf32 in (True, False)
    ]
    assert float(found[0].total_s[0]) <= float(found[1].total_s[0]) * (1 + 1e-12)


def test_rows_that_are_no_whole_vectors_slow_float32_products_down() -> None:
    logits = work(product(8192, 50257, 768, "f32")).classes[0]
    padded = work(product(8192, 50304, 768, "f32")).classes[0]
    assert compute_constants(logits) == ("u_unaligned",)
    assert compute_constants(padded) == ()
    assert compute_constants(work(product(8192, 50257, 768)).classes[0]) == ()  # XLA pads 16 bits


def test_tensor_cores_at_half_rate_reach_more_of_it() -> None:
    assert "u_half_rate" in compute_constants(
        work(product(512, 512, 512), gpu="rtx-5090").classes[0]
    )
    assert "u_half_rate" not in compute_constants(work(product(512, 512, 512)).classes[0])


def test_sums_along_rows_and_over_a_batch_have_shares_of_their_own() -> None:
    rows = replace(kernel("reduce", traffic_bytes=1e6), dims={"inner": (1,)})
    batch = replace(kernel("reduce", traffic_bytes=1e6), dims={"inner": (64,)})
    assert {memory_constant(one.cost) for one in work(rows, batch).classes} == {
        "e_rows",
        "e_reduce",
    }


def test_the_host_pays_for_convolutions_that_no_graph_holds() -> None:
    one = work(*[convolution(flops=1e6) for _ in range(10)], kernel("loop"))
    paid = Neutral(CUBES | {"host_convolution": 50e-6, "host_kernel": 1e-6})
    assert host_seconds(one, paid) == pytest.approx(10 * 50e-6 + 11 * 1e-6)
    step = step_of(one, seconds(one, paid), paid)
    assert float(step.step_s[0]) == pytest.approx(float(step.host_s[0]), rel=0.05)


def test_no_cuda_graph_holds_a_loop() -> None:
    looped = replace(kernel("loop", traffic_bytes=1e3), count=200, repeats=200)
    one = work(looped, kernel("loop", traffic_bytes=1e3))
    paid = Neutral(CUBES | {"host_loop": 4e-6})
    assert host_seconds(one, paid) == pytest.approx(200 * 4e-6)


@given(st.integers(1, 4096))
def test_parts_are_never_negative_and_add_up(batch_size: int) -> None:
    one = work(
        convolution(flops=1e8, traffic_bytes=1e5), kernel("loop", traffic_bytes=1e5),
        product(256, 256, 256), batch_size=batch_size,
    )  # fmt: skip
    constants = Neutral(CUBES | {"t_kernel": 2e-6, "t_step": 1e-4})
    found = seconds(one, constants)
    for part in (found.compute_s, found.memory_s, found.floor_s):
        assert np.all(part >= 0.0)
    step = step_of(one, found, constants)
    assert float(step.compute_s[0] + step.memory_s[0] + step.launch_s[0]) == pytest.approx(
        float(step.step_s[0])
    )
