from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.interval import Scaled
from tfdyno.core.program import BufferPlan, Kernel, Program
from tfdyno.model.merge import merged

PLAN = BufferPlan(
    argument_bytes=Scaled(),
    output_bytes=Scaled(),
    aliased_bytes=Scaled(),
    temporary_bytes=Scaled(),
    peak_bytes=Scaled(),
    parts_bytes={},
    largest=(),
    live_curve=(),
)


def program(*kernels: Kernel) -> Program:
    return Program(
        trace_sha256="", route="quick", family="", batch_size=8, marker=0, kernels=kernels,
        buffers=PLAN, seconds_s=0, versions={},
    )  # fmt: skip


LOOP = Kernel(kind="loop", dtype="f32", read_bytes=Scaled(fixed=8), layer="a", name="add")

kernels = st.builds(
    Kernel,
    kind=st.sampled_from(["loop", "gemm"]),
    dtype=st.sampled_from(["f32", "f16"]),
    flops=st.builds(Scaled, fixed=st.integers(0, 3), per_sample=st.integers(0, 3)),
    read_bytes=st.builds(Scaled, fixed=st.integers(0, 3)),
    layer=st.sampled_from(["a", "b"]),
    dims=st.sampled_from([{}, {"m": (8,)}]),
    count=st.integers(1, 3),
)


def test_kernels_that_differ_in_layer_and_name_only_become_one() -> None:
    (kernel,) = merged(program(LOOP, replace(LOOP, layer="b", name="multiply"))).kernels
    assert kernel.count == 2
    assert kernel.read_bytes == Scaled(fixed=16)
    assert (kernel.layer, kernel.name) == ("", "")


def test_kernels_of_other_sizes_stay_apart() -> None:
    other = replace(LOOP, dims={"m": (8,)})
    assert len(merged(program(LOOP, other, replace(LOOP, dtype="f16"))).kernels) == 3


@given(st.lists(kernels, max_size=30))
def test_launches_flops_and_bytes_are_kept(found: list[Kernel]) -> None:
    before, after = program(*found), merged(program(*found))
    for kind in ("loop", "gemm"):
        for dtype in ("f32", "f16"):

            def total(made: Program, kind: str = kind, dtype: str = dtype) -> tuple[float, ...]:
                same = [k for k in made.kernels if (k.kind, k.dtype) == (kind, dtype)]
                return (
                    sum(k.count for k in same),
                    sum(k.flops.at(7) for k in same),
                    sum((k.read_bytes + k.write_bytes).at(7) for k in same),
                )

            assert total(before) == total(after)


@given(st.lists(kernels, max_size=30))
def test_each_merged_launch_costs_what_it_cost_before(found: list[Kernel]) -> None:
    after = merged(program(*found))
    single = {(k.flops.at(7) / k.count, k.read_bytes.at(7) / k.count) for k in found}
    assert {
        (k.flops.at(7) / k.count, k.read_bytes.at(7) / k.count) for k in after.kernels
    } <= single
