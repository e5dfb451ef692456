import pytest

from tfdyno.kernels.hlo.library import LibraryCall, library_call, scratch_bytes
from tfdyno.kernels.hlo.text import Shape, parse
from tfdyno.kernels.records import Sizes

PRODUCT = (
    'custom_call_target="__cublas$lt$matmul", backend_config={"gemm_backend_config":{'
    '"dot_dimension_numbers":{"lhs_contracting_dimensions":["2"],'
    '"rhs_contracting_dimensions":["1"],"lhs_batch_dimensions":["0"],'
    '"rhs_batch_dimensions":["0"]},"epilogue":"BIAS"}}'
)


def call(result: str, operands: list[Shape], attributes: str, phase: str) -> LibraryCall:
    line = f"  ROOT %c = ({result}, u8[16]{{0}}) custom-call(%a, %b), {attributes}"
    module = parse(f"HloModule m\n\nENTRY %main (a: f16[1]) -> f16[1] {{\n{line}\n}}\n")
    work = library_call(module.entry.root, operands, phase, Sizes(8, 0))  # type: ignore[arg-type]
    assert work
    return work


def test_a_convolution_counts_two_flops_per_multiply_add() -> None:
    # 8 images, 3x3 window, stride 2, 16 -> 32 channels, 14x14 -> 7x7, channels last
    data, kernel = Shape("f16", (8, 14, 14, 16)), Shape("f16", (32, 3, 3, 16))
    attributes = (
        "window={size=3x3 stride=2x2 pad=0_1x0_1}, dim_labels=b01f_o01i->b01f, "
        'custom_call_target="__cudnn$convForward"'
    )
    work = call("f16[8,7,7,32]{3,2,1,0}", [data, kernel], attributes, "forward")
    assert work.flops == 2 * 8 * 7 * 7 * 3 * 3 * 16 * 32
    assert work.direction == "forward"
    assert work.dims == {
        "n": (8,), "cin": (16,), "cout": (32,), "groups": (1,), "window": (3, 3),
        "stride": (2, 2), "input": (14, 14), "output": (7, 7),
    }  # fmt: skip


def test_the_three_passes_of_a_convolution_count_the_same() -> None:
    x, w, y = (8, 16, 14, 14), (32, 16, 3, 3), (8, 32, 7, 7)  # channels first
    window = "window={size=3x3 stride=2x2 pad=0_1x0_1}, dim_labels=bf01_oi01->bf01, "
    passes = {
        "convForward": (y, x, w),
        "convBackwardInput": (x, y, w),
        "convBackwardFilter": (w, x, y),
    }
    works = [
        call(
            f"f32[{','.join(map(str, result))}]{{3,2,1,0}}",
            [Shape("f32", first), Shape("f32", second)],
            f'{window}custom_call_target="__cudnn${name}"',
            "backward" if "Backward" in name else "forward",
        )
        for name, (result, first, second) in passes.items()
    ]
    assert {work.flops for work in works} == {2 * 8 * 7 * 7 * 9 * 16 * 32}
    assert [w.direction for w in works] == ["forward", "input_gradient", "weight_gradient"]
    assert works[0].dims == works[1].dims == works[2].dims


def test_a_forward_call_in_the_backward_pass_is_an_input_gradient() -> None:
    # forward: 16 -> 32 channels, valid padding, 14x14 -> 12x12; the call runs 32 -> 16, 12 -> 14
    data, kernel = Shape("f16", (8, 12, 12, 32)), Shape("f16", (16, 3, 3, 32))
    attributes = (
        "window={size=3x3 pad=2_2x2_2}, dim_labels=b01f_o01i->b01f, "
        'custom_call_target="__cudnn$convForward"'
    )
    work = call("f16[8,14,14,16]{3,2,1,0}", [data, kernel], attributes, "backward")
    assert work.direction == "input_gradient"
    assert (work.dims["cin"], work.dims["cout"]) == ((16,), (32,))
    assert (work.dims["input"], work.dims["output"]) == ((14, 14), (12, 12))
    assert work.flops == 2 * 8 * 14 * 14 * 9 * 16 * 32  # borders are computed with


def test_a_forward_call_over_the_batch_is_a_weight_gradient() -> None:
    # forward: 8 images, 16 -> 32 channels, 14x14 -> 12x12, 3x3; images and channels change places
    data, kernel = Shape("f16", (16, 14, 14, 8)), Shape("f16", (32, 12, 12, 8))
    attributes = (
        'window={size=12x12}, dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$convForward"'
    )
    work = call("f16[16,3,3,32]{3,2,1,0}", [data, kernel], attributes, "backward")
    assert work.direction == "weight_gradient"
    assert (work.dims["n"], work.dims["cin"], work.dims["cout"]) == ((8,), (16,), (32,))
    assert (work.dims["window"], work.dims["output"]) == ((3, 3), (12, 12))
    assert work.flops == 2 * 8 * 12 * 12 * 9 * 16 * 32


def test_a_depthwise_convolution_counts_its_own_channel_only() -> None:
    data, kernel = Shape("f16", (8, 14, 14, 64)), Shape("f16", (64, 3, 3, 1))
    attributes = (
        "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_o01i->b01f, feature_group_count=64, "
        'custom_call_target="__cudnn$convForward"'
    )
    work = call("f16[8,14,14,64]{3,2,1,0}", [data, kernel], attributes, "forward")
    assert work.flops == 2 * 8 * 14 * 14 * 9 * 64
    assert work.dims["groups"] == (64,)


def test_a_batched_product_has_its_sizes_from_the_contracted_dimensions() -> None:
    left, right = Shape("f16", (12, 384, 64)), Shape("f16", (12, 64, 128))
    work = call("f16[12,384,128]{2,1,0}", [left, right], PRODUCT, "forward")
    assert work.dims == {"m": (384,), "n": (128,), "k": (64,), "batch": (12,)}
    assert work.flops == 2 * 12 * 384 * 128 * 64


@pytest.mark.parametrize(
    ("result", "expected"),
    [("(f16[4]{0}, s8[4096]{0})", 4096), ("(f16[4]{0}, f16[4]{0})", 0), ("f16[4]{0}", 0)],
)
def test_scratch_is_the_last_array_of_raw_bytes(result: str, expected: int) -> None:
    line = f'  ROOT %c = {result} custom-call(), custom_call_target="x"'
    module = parse(f"HloModule m\n\nENTRY %main () -> f16[4] {{\n{line}\n}}\n")
    assert scratch_bytes(module.entry.root) == expected
