from __future__ import annotations

import pytest
from tests.model.steps import Neutral

from tfdyno.catalog.gpus import find
from tfdyno.model.time.kernel_table import CostClass
from tfdyno.model.time.kernel_time import rates, targets, unit_of

A100 = find("a100-sxm4-40gb")
A100_HALF = 108 * 2048 * 1.41e9
A100_TF32 = 108 * 1024 * 1.41e9
A100_CUDA = 108 * 128 * 1.41e9
A100_DOUBLE = 108 * 64 * 1.41e9
RTX_4090_DOUBLE = 128 * 4 * 2.52e9
GEMM = CostClass("gemm", "f16")


def price(cost_class: CostClass, gpu: str = "a100-sxm4-40gb", *, tf32: bool = True) -> float:
    found = rates([cost_class], targets([(find(gpu), tf32)], {}), Neutral())
    return 1.0 / float(found.s_per_flop[0, 0])


@pytest.mark.parametrize(
    ("gpu", "dtype", "tf32", "unit"),
    [
        ("a100-sxm4-40gb", "f16", True, "half"),
        ("a100-sxm4-40gb", "bf16", True, "half"),
        ("a100-sxm4-40gb", "f32", True, "tf32"),
        ("a100-sxm4-40gb", "f32", False, "cuda"),
        ("v100-sxm2-16gb", "f32", True, "cuda"),
        ("v100-sxm2-16gb", "bf16", True, "cuda"),
        ("gtx-1080-ti", "f16", True, "shared"),
        ("gtx-1080-ti", "f32", False, "shared"),  # 6.1: no integer units beside
        ("t4", "f32", True, "cuda"),
        ("a100-sxm4-40gb", "f64", True, "double"),
        ("gtx-1080-ti", "f64", True, "double"),
        ("jetson-thor-t5000", "f64", True, "cuda"),  # its rate is not known: that of float32
    ],
)
def test_the_unit_is_what_the_card_has(gpu: str, dtype: str, tf32: bool, unit: str) -> None:
    assert unit_of(find(gpu), dtype, tf32_allowed=tf32)[0] == unit


def test_half_on_pascal_computes_at_the_float32_rate_not_at_a_sixty_fourth() -> None:
    card = find("gtx-1080-ti")
    assert unit_of(card, "f16", tf32_allowed=True) == unit_of(card, "f32", tf32_allowed=False)


def test_an_ideal_product_runs_at_the_dense_peak() -> None:
    assert price(GEMM) == pytest.approx(A100_HALF)
    assert price(CostClass("gemm", "f32")) == pytest.approx(A100_TF32)
    assert price(CostClass("gemm", "f32"), tf32=False) == pytest.approx(A100_CUDA)


def test_a_faster_tensor_core_attains_a_smaller_share() -> None:
    classes = [GEMM, CostClass("convolution", "f16", "forward")]
    constants = Neutral(gemm_feed=0.25, tensor_feed=0.5)
    found = rates(classes, targets([(A100, True)], {}), constants)
    assert 1.0 / found.s_per_flop[0, 0] == pytest.approx(A100_HALF / (2048 / 512) ** 0.25)
    assert 1.0 / found.s_per_flop[0, 1] == pytest.approx(A100_HALF / (2048 / 512) ** 0.5)


def test_winograd_helps_float32_and_not_tensor_cores() -> None:
    constants = Neutral(winograd3=2.0)
    classes = [CostClass("convolution", d, "forward", "winograd3") for d in ("f16", "f32")]
    found = rates(classes, targets([(A100, False)], {}), constants)
    assert 1.0 / found.s_per_flop[0, 0] == pytest.approx(A100_HALF)
    assert 1.0 / found.s_per_flop[0, 1] == pytest.approx(2.0 * A100_CUDA)


def test_where_tf32_is_allowed_part_of_the_convolutions_still_take_winograd() -> None:
    kind, card = CostClass("convolution", "f32", "forward", "winograd3"), find("rtx-3090")
    constants = Neutral(winograd3=2.0, winograd_tf32=0.5, tensor_feed=0.0)
    strict, allowed = (
        rates([kind], targets([(card, tf32)], {}), constants) for tf32 in (False, True)
    )
    assert allowed.s_per_flop[0, 0] / strict.s_per_flop[0, 0] == pytest.approx(2.0 / 1.5)


def test_depthwise_computes_on_cuda_cores() -> None:
    assert price(CostClass("convolution", "f16", "forward", "depthwise")) == pytest.approx(
        A100_CUDA
    )


@pytest.mark.parametrize("shape", ["", "winograd3", "winograd5", "depthwise"])
@pytest.mark.parametrize(
    ("gpu", "peak"), [("a100-sxm4-40gb", A100_DOUBLE), ("rtx-4090", RTX_4090_DOUBLE)]
)
def test_float64_runs_at_its_own_peak_without_winograd(gpu: str, peak: float, shape: str) -> None:
    constants = Neutral(winograd3=2.0, winograd5=2.5)
    kind = CostClass("convolution", "f64", "forward", shape)
    found = rates([kind], targets([(find(gpu), True)], {}), constants)
    assert 1.0 / found.s_per_flop[0, 0] == pytest.approx(peak)


def test_a_card_that_does_not_hold_its_clock_computes_slower_but_moves_bytes_as_fast() -> None:
    full, held = (
        rates([GEMM], targets([(A100, True)], clocks), Neutral())
        for clocks in ({}, {A100.slug: 0.5})
    )
    assert held.s_per_flop[0, 0] == pytest.approx(2 * full.s_per_flop[0, 0])
    assert held.s_per_byte[0, 0] == full.s_per_byte[0, 0]


def test_bytes_of_a_fusion_cost_their_share_of_the_bandwidth() -> None:
    classes = [CostClass("reduce"), CostClass("reduce", shape="rows")]
    found = rates(classes, targets([(A100, True)], {}), Neutral(e_reduce=0.5, e_rows=0.8))
    assert found.s_per_byte[0, 1] == pytest.approx(1.0 / (0.8 * 1555e9))
    assert found.s_per_byte[0, 0] == pytest.approx(1.0 / (0.5 * 1555e9))
    assert found.s_per_flop[0, 0] == 0.0
