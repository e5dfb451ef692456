import pytest

from tfdyno.core.choose.program import Kernel
from tfdyno.kernels.hlo.kernels import KernelReader
from tfdyno.kernels.hlo.text import parse
from tfdyno.kernels.records import Sizes

ADD = """%add (p: f32[], q: f32[]) -> f32[] {
  %p = f32[] parameter(0)
  %q = f32[] parameter(1)
  ROOT %sum = f32[] add(%p, %q)
}
"""


def kernels(computations: str, entry: str, *, marker: int = 37, train: bool = True) -> list[Kernel]:
    header = f"HloModule m, is_scheduled=true\n\n{computations}"
    text = f"{header}\nENTRY %main () -> f32[] {{\n{entry}\n}}\n"
    return list(KernelReader(parse(text), Sizes(74, marker), train=train).kernels())


def test_a_fusion_reads_its_operands_and_writes_its_results() -> None:
    (kernel,) = kernels(
        """%fused (a: f32[74,8], b: f32[8]) -> (f32[74,8], f16[74,8]) {
  %a = f32[74,8]{1,0} parameter(0)
  %b = f32[8]{0} parameter(1)
  %wide = f32[74,8]{1,0} broadcast(%b), dimensions={1}
  %sum = f32[74,8]{1,0} add(%a, %wide)
  %half = f16[74,8]{1,0} convert(%sum)
  ROOT %both = (f32[74,8]{1,0}, f16[74,8]{1,0}) tuple(%sum, %half)
}
""",
        """  %x = f32[74,8]{1,0} parameter(0)
  %y = f32[8]{0} parameter(1)
  ROOT %f = (f32[74,8]{1,0}, f16[74,8]{1,0}) fusion(%x, %y), kind=kLoop, calls=%fused, \
metadata={op_name="jit(step)/transpose(jvp(dense_1))/add"}""",
    )
    assert kernel.kind == "loop"
    assert (kernel.layer, kernel.phase, kernel.dtype) == ("dense_1", "backward", "f32")
    assert kernel.read_bytes.per_sample == 8 * 4  # the row of a sample
    assert kernel.read_bytes.fixed == 8 * 4  # the bias
    assert kernel.write_bytes.per_sample == 8 * (4 + 2)
    assert (kernel.flops.per_sample, kernel.flops.fixed) == (8, 0)  # one addition each
    assert kernel.write_bytes.fixed == 0


def test_without_a_marker_everything_is_fixed_at_the_batch() -> None:
    (kernel,) = kernels(
        "", "  %x = f32[74]{0} parameter(0)\n  ROOT %c = f32[74]{0} copy(%x)", marker=0
    )
    assert kernel.kind == "copy"
    assert (kernel.read_bytes.fixed, kernel.read_bytes.per_sample) == (296, 0)


def test_a_slicing_fusion_reads_the_slice_only() -> None:
    (kernel,) = kernels(
        """%fused (a: f32[100,8], i: s32[]) -> f32[1,8] {
  %a = f32[100,8]{1,0} parameter(0)
  %i = s32[] parameter(1)
  %zero = s32[] constant(0)
  ROOT %row = f32[1,8]{1,0} dynamic-slice(%a, %i, %zero), dynamic_slice_sizes={1,8}
}
""",
        """  %x = f32[100,8]{1,0} parameter(0)
  %n = s32[] parameter(1)
  ROOT %f = f32[1,8]{1,0} fusion(%x, %n), kind=kLoop, calls=%fused""",
    )
    assert kernel.read_bytes.fixed == 8 * 4 + 4
    assert kernel.write_bytes.fixed == 8 * 4


def test_an_update_in_place_reads_and_writes_the_update_only() -> None:
    (kernel,) = kernels(
        """%fused (a: f32[100,8], u: f32[1,8], i: s32[]) -> f32[100,8] {
  %a = f32[100,8]{1,0} parameter(0)
  %u = f32[1,8]{1,0} parameter(1)
  %i = s32[] parameter(2)
  %zero = s32[] constant(0)
  ROOT %new = f32[100,8]{1,0} dynamic-update-slice(%a, %u, %i, %zero)
}
""",
        """  %x = f32[100,8]{1,0} parameter(0)
  %y = f32[1,8]{1,0} parameter(1)
  %n = s32[] parameter(2)
  ROOT %f = f32[100,8]{1,0} fusion(%x, %y, %n), kind=kLoop, calls=%fused""",
    )
    assert kernel.read_bytes.fixed == 8 * 4 + 4
    assert kernel.write_bytes.fixed == 8 * 4


@pytest.mark.parametrize(
    ("line", "kind", "expected"),
    [
        ("reduce(%a, %z), dimensions={0}, to_apply=%add", "kInput", "reduce"),
        ("transpose(%a), dimensions={1,0}", "kInput", "transpose"),
        ("transpose(%a), dimensions={1,0}", "kLoop", "loop"),
        ("reduce-window(%a, %z), window={size=3x3 stride=2x2}, to_apply=%add", "kLoop", "window"),
        ("reduce-window(%a, %z), window={size=1x8 pad=0_0x7_0}, to_apply=%add", "kLoop", "scan"),
        ("scatter(%a, %z, %a), to_apply=%add", "kInput", "scatter"),
    ],
)
def test_the_class_of_a_fusion_comes_from_what_it_contains(
    line: str, kind: str, expected: str
) -> None:
    (kernel,) = kernels(
        f"""{ADD}
%fused (a: f32[8,8]) -> f32[8,8] {{
  %a = f32[8,8]{{1,0}} parameter(0)
  %z = f32[] constant(0)
  ROOT %r = f32[8,8]{{1,0}} {line}
}}
""",
        f"""  %x = f32[8,8]{{1,0}} parameter(0)
  ROOT %f = f32[8,8]{{1,0}} fusion(%x), kind={kind}, calls=%fused""",
    )
    assert kernel.kind == expected


def test_pooling_keeps_its_window_and_stride() -> None:
    (kernel,) = kernels(
        f"""{ADD}
%fused (a: f32[8,9]) -> f32[4,4] {{
  %a = f32[8,9]{{1,0}} parameter(0)
  %z = f32[] constant(0)
  ROOT %r = f32[4,4]{{1,0}} reduce-window(%a, %z), window={{size=2x3 stride=2x2}}, to_apply=%add
}}
""",
        """  %x = f32[8,9]{1,0} parameter(0)
  ROOT %f = f32[4,4]{1,0} fusion(%x), kind=kLoop, calls=%fused""",
    )
    assert kernel.dims == {"window": (2, 3), "stride": (2, 2)}


def test_a_loop_counts_its_kernels_once_per_trip() -> None:
    (kernel,) = kernels(
        """%body (s: (s32[], f32[74])) -> (s32[], f32[74]) {
  %s = (s32[], f32[74]{0}) parameter(0)
  %n = s32[] get-tuple-element(%s), index=0
  %v = f32[74]{0} get-tuple-element(%s), index=1
  %c = f32[74]{0} copy(%v)
  ROOT %t = (s32[], f32[74]{0}) tuple(%n, %c)
}

%condition (s: (s32[], f32[74])) -> pred[] {
  %s = (s32[], f32[74]{0}) parameter(0)
  ROOT %yes = pred[] constant(true)
}
""",
        """  %x = (s32[], f32[74]{0}) parameter(0)
  ROOT %w = (s32[], f32[74]{0}) while(%x), condition=%condition, body=%body, \
backend_config={"known_trip_count":{"n":"12"}}""",
    )
    assert (kernel.repeats, kernel.count) == (12, 12)
    assert kernel.read_bytes.per_sample == 12 * 4


def test_a_condition_counts_its_longer_branch() -> None:
    found = kernels(
        """%apply (a: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  %one = f32[8]{0} copy(%a)
  ROOT %two = f32[8]{0} copy(%one)
}

%skip (b: f32[8]) -> f32[8] {
  ROOT %b = f32[8]{0} parameter(0)
}
""",
        """  %x = f32[8]{0} parameter(0)
  %p = pred[] parameter(1)
  ROOT %c = f32[8]{0} conditional(%p, %x, %x), true_computation=%apply, false_computation=%skip""",
    )
    assert [kernel.name for kernel in found] == ["one", "two"]


def test_views_and_parameters_launch_nothing() -> None:
    entry = """  %x = f32[8]{0} parameter(0)
  %b = f32[2,4]{1,0} bitcast(%x)
  ROOT %t = (f32[2,4]{1,0}) tuple(%b)"""
    assert kernels("", entry) == []


def test_a_weight_gradient_product_grows_in_its_inner_dimension() -> None:
    dims = (
        '{"lhs_contracting_dimensions":["0"],"rhs_contracting_dimensions":["0"],'
        '"lhs_batch_dimensions":[],"rhs_batch_dimensions":[]}'
    )
    (kernel,) = kernels(
        "",
        f"""  %x = f16[74,16]{{1,0}} parameter(0)
  %g = f16[74,32]{{1,0}} parameter(1)
  ROOT %p = (f16[16,32]{{1,0}}, s8[4096]{{0}}) custom-call(%x, %g), \
custom_call_target="__cublas$lt$matmul", \
metadata={{op_name="jit(step)/transpose(jvp(dense))/dot_general"}}, \
backend_config={{"gemm_backend_config":{{"dot_dimension_numbers":{dims}}}}}""",
    )
    assert kernel.dims == {"m": (16,), "n": (32,), "k": (74,), "batch": (1,)}
    assert kernel.dims_scaled == ("k",)
    assert kernel.flops.per_sample == 2 * 16 * 32
    assert kernel.write_bytes.fixed == 16 * 32 * 2  # the workspace is no result
    assert kernel.workspace_bytes.fixed == 4096


def test_inference_is_forward_throughout() -> None:
    entry = """  %x = f32[8]{0} parameter(0)
  ROOT %c = f32[8]{0} copy(%x), metadata={op_name="jit(f)/mul"}"""
    assert [kernel.phase for kernel in kernels("", entry, train=False)] == ["forward"]
    assert [kernel.phase for kernel in kernels("", entry)] == ["update"]
