from __future__ import annotations

from itertools import product as each_with_each

import numpy as np
import pytest

from tfdyno.catalog.gpus import all_gpus
from tfdyno.catalog.time_model import time_model
from tfdyno.core.choose.hardware import VENDOR
from tfdyno.model.time.kernel_table import CostClass
from tfdyno.model.time.kernel_time import DTYPES, UNITS, rates, route_of, targets
from tfdyno.model.time.parts import (
    EFFICIENCY,
    compute_routes,
    memory_parts,
    overlap_parts,
    product,
)

DIRECTIONS = ("", "forward", "input_gradient", "weight_gradient")
SHAPES = ("", "narrow", "grouped", "depthwise", "volume", "winograd3", "winograd5", "pointwise")
CLASSES = (
    *(CostClass("gemm", dtype) for dtype in DTYPES),
    *(CostClass("convolution", *one) for one in each_with_each(DTYPES, DIRECTIONS, SHAPES)),
    *(CostClass(kind) for kind in (*EFFICIENCY, "random", "collective", "other")),
    CostClass("reduce", shape="rows"),
    *(CostClass(kind, shape="update") for kind in ("loop", "reduce")),
)
CARDS = tuple(
    (gpu, tf32) for gpu in all_gpus() if gpu.vendor.upper() == VENDOR for tf32 in (True, False)
)


def test_the_parts_multiplied_are_the_price_of_every_class_on_every_card() -> None:
    model = time_model()
    everything = targets(CARDS, model.sustained_clock)
    priced = rates(CLASSES, everything, model)
    for row, card in enumerate(CARDS):
        alone = targets([card], model.sustained_clock)
        bandwidth = card[0].memory_bytes_per_s
        for column, cost_class in enumerate(CLASSES):
            route = route_of(cost_class, alone, model)
            s_per_flop = 1.0 / (route[1] * product(route[0].parts)) if route else 0.0
            s_per_byte = 1.0 / (bandwidth * product(memory_parts(cost_class, model)))
            again = s_per_byte * product(overlap_parts(cost_class, model))
            assert priced.s_per_flop[row, column] == pytest.approx(s_per_flop, rel=1e-12)
            assert priced.s_per_byte[row, column] == pytest.approx(s_per_byte, rel=1e-12)
            assert priced.s_per_extra_byte[row, column] == pytest.approx(again, rel=1e-12)


@pytest.mark.parametrize("unit", UNITS)
def test_every_part_names_a_constant_of_the_model_and_says_what_it_stands_for(unit: str) -> None:
    model = time_model()
    for cost_class in CLASSES:
        routes = compute_routes(cost_class, unit, 1024.0, model)
        lists = [memory_parts(cost_class, model), *(route.parts for route in routes)]
        for part in (part for parts in lists for part in parts):
            assert part.name
            assert part.constant in model.parameters
            if part.constant not in ("tensor_feed", "gemm_feed", "winograd_tf32"):
                # an exponent, or a share of another constant
                assert part.factor == model[part.constant]


def test_winograd_is_a_second_way_that_counts_where_it_is_faster() -> None:
    constants = {"u_cuda": 0.5, "winograd3": 2.0, "d_input_gradient": 0.8}
    wide = CostClass("convolution", "f32", "input_gradient", "winograd3")
    first, second = compute_routes(wide, "cuda", 512.0, constants)
    assert product(first.parts) == pytest.approx(0.5 * 0.8)
    assert product(second.parts) == pytest.approx(0.5 * 2.0 * 0.8)


def test_tensor_cores_that_do_more_per_clock_attain_less_of_their_peak() -> None:
    constants = {"u_half": 0.9, "d_gemm_tensor": 1.1, "gemm_feed": 0.5}
    (route,) = compute_routes(
        CostClass("gemm", "f16"), "half", np.array([512.0, 2048.0]), constants
    )
    assert product(route.parts) == pytest.approx([0.9 * 1.1, 0.9 * 1.1 * 0.5])


def test_a_tensor_core_that_is_fed_twice_as_fast_takes_the_root_of_what_it_gains() -> None:
    constants = {"u_half": 1.0, "d_gemm_tensor": 1.0, "gemm_feed": 0.5, "tensor_feed": 0.25}
    shares = {}
    for cost_class in (CostClass("gemm", "f16"), CostClass("convolution", "f16", "forward")):
        (route,) = compute_routes(cost_class, "half", 8192.0, constants)  # 16 x 512
        shares[cost_class.kind] = product(route.parts)
    assert shares == pytest.approx({"gemm": 16**-0.5, "convolution": 16**-0.25})


@pytest.mark.parametrize(
    "cost_class",
    [
        CostClass("gemm", "f32"),
        CostClass("convolution", "f32", "forward"),
        CostClass("convolution", "f32", "forward", "winograd3"),
    ],
)
def test_without_integer_units_cuda_cores_attain_less_in_every_way(cost_class: CostClass) -> None:
    constants = {"u_cuda": 0.8, "u_shared": 0.5, "d_gemm_cuda": 1.0, "winograd3": 2.0}
    alone = compute_routes(cost_class, "cuda", 512.0, constants)
    shared = compute_routes(cost_class, "shared", 512.0, constants)
    assert [route.name for route in alone] == [route.name for route in shared]
    for one, other in zip(alone, shared, strict=True):
        assert product(other.parts) == pytest.approx(0.5 * product(one.parts))


def test_with_tf32_winograd_saves_only_where_tf32_is_not_taken() -> None:
    wide = CostClass("convolution", "f32", "forward", "winograd3")
    constants = {"u_cuda": 0.5, "u_tf32": 0.4, "tensor_feed": 0.0, "winograd3": 3.0}
    (_, strict) = compute_routes(wide, "cuda", 512.0, constants)
    assert product(strict.parts) == pytest.approx(0.5 * 3.0)
    for share, attained in ((0.0, 0.5), (0.25, 0.5 * 1.5), (1.0, 0.5 * 3.0)):
        (_, route) = compute_routes(wide, "tf32", 512.0, {**constants, "winograd_tf32": share})
        assert product(route.parts) == pytest.approx(attained)
        assert route.parts[-1].constant == "winograd_tf32"
    assert len(compute_routes(wide, "half", 512.0, {**constants, "u_half": 0.4})) == 1


@pytest.mark.parametrize(
    ("cost_class", "constant"),
    [
        (CostClass("reduce", shape="rows"), "e_rows"),
        (CostClass("reduce"), "e_reduce"),
        (CostClass("reduce", shape="update"), "e_reduce"),
        (CostClass("loop", shape="update"), "e_loop"),
        (CostClass("convolution", "f16", "forward", "depthwise"), "e_depthwise"),
        (CostClass("gemm", "f16"), "e_library"),
    ],
)
def test_the_bytes_of_a_kernel_are_paid_at_the_share_of_its_kind(
    cost_class: CostClass, constant: str
) -> None:
    (part,) = memory_parts(cost_class, time_model())
    assert part.constant == constant


def test_a_fusion_is_priced_by_its_bytes_alone() -> None:
    assert compute_routes(CostClass("loop"), "cuda", 512.0, {}) == ()
