from __future__ import annotations

import pytest
from tests.model.steps import program

from tfdyno.catalog.gpus import find
from tfdyno.core.base.interval import Scaled
from tfdyno.core.choose.program import Kernel
from tfdyno.model.time.law_classes import classed


def gemm(m: int, **more: object) -> Kernel:
    return Kernel(
        kind="gemm", dtype="f32", flops=Scaled(fixed=1.0),
        dims={"m": (m,), "n": (64,), "k": (64,), "batch": (1,)}, **more,  # type: ignore[arg-type]
    )  # fmt: skip


def test_kernels_are_sorted_once_for_all_batches_and_cards_of_a_kind() -> None:
    made = program(gemm(64), Kernel(kind="loop", dtype="f32"), gemm(64, repeats=3))
    found = classed(made, find("a100-sxm4-80gb"), tf32_allowed=True)
    assert classed(made, find("a100-pcie-40gb"), tf32_allowed=True) is found
    assert [(unit, places.tolist()) for unit, places in found.by_unit] == [("tf32_tensor", [0, 2])]
    assert found.by_peak == ()
    assert found.in_loops.tolist() == [False, False, True]
    with pytest.raises(ValueError, match="read-only"):
        found.in_loops[0] = True


def test_a_card_without_the_unit_has_classes_of_its_own() -> None:
    made = program(gemm(64))
    found = classed(made, find("t4"), tf32_allowed=True)
    assert [unit for unit, _ in found.by_unit] == ["fp32"]
    assert [one.unit for one in found.distinct] == ["cuda"]


def test_rows_that_are_no_whole_vectors_are_not_aligned() -> None:
    made = program(gemm(63), gemm(64))
    found = classed(made, find("a100-sxm4-80gb"), tf32_allowed=True)
    aligned = [found.distinct[place].aligned for place in found.places]
    assert aligned == [False, True]
