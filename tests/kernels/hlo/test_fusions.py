from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.kernels.hlo.fusions import inner_elements
from tfdyno.kernels.hlo.kernels import KernelReader
from tfdyno.kernels.hlo.text import parse
from tfdyno.kernels.records import Sizes

if TYPE_CHECKING:
    from tfdyno.core.choose.program import Kernel

MODULE = """HloModule m, is_scheduled=true

%add (p: f32[], q: f32[]) -> f32[] {{
  %p = f32[] parameter(0)
  %q = f32[] parameter(1)
  ROOT %sum = f32[] add(%p, %q)
}}

%fused (a: f32[296,32,64]) -> f32[] {{
  %a = f32[296,32,64]{{2,1,0}} parameter(0)
  %z = f32[] constant(0)
{body}
}}

ENTRY %main () -> f32[] {{
  %x = f32[296,32,64]{{2,1,0}} parameter(0)
  ROOT %f = f32[64]{{0}} fusion(%x), kind=kInput, calls=%fused
}}
"""


def reduced(dimensions: str) -> str:
    axes = {int(axis) for axis in dimensions.split(",") if axis}
    kept = ",".join(str(size) for axis, size in enumerate((296, 32, 64)) if axis not in axes)
    return f"f32[{kept}] reduce(%a, %z), dimensions={{{dimensions}}}, to_apply=%add"


def inner(*lines: str) -> int:
    return inner_elements(parse(MODULE.format(body="\n".join(lines))).computations["fused"])


def kernel(line: str) -> Kernel:
    (found,) = KernelReader(parse(MODULE.format(body=line)), Sizes(296, 37), train=True).kernels()
    return found


@pytest.mark.parametrize(
    ("dimensions", "elements"),
    [("2", 1), ("1,2", 1), ("0,1,2", 1), ("0,1", 64), ("1", 64), ("0", 32 * 64), ("", 1)],
)
def test_a_reduction_adds_elements_that_lie_so_far_apart(dimensions: str, elements: int) -> None:
    assert inner(f"  ROOT %r = {reduced(dimensions)}") == elements


def test_the_widest_apart_of_several_counts_and_without_any_it_is_1() -> None:
    rows, channels = reduced("1,2"), reduced("0,1")
    assert inner(f"  %one = {rows}", f"  ROOT %two = {channels}") == 64
    assert inner("  ROOT %n = f32[296,32,64]{2,1,0} negate(%a)") == 1


def test_compiled_reductions_have_the_size_and_other_fusions_have_none() -> None:
    found = kernel(f"  ROOT %r = {reduced('0,1')}")
    assert (found.kind, found.dims) == ("reduce", {"inner": (64,)})
    other = kernel("  ROOT %n = f32[296,32,64]{2,1,0} negate(%a)")
    assert (other.kind, other.dims) == ("loop", {})
