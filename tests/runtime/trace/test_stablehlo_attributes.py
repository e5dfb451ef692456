"""What the cost of an operation depends on besides its operands, read from StableHLO text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.runtime.trace.stablehlo import read_graph, read_module

if TYPE_CHECKING:
    from pathlib import Path


def attributes(body: str, arguments: str, folder: Path) -> dict[str, Any]:
    """Attributes of the last operation of a function with this body."""
    path = folder / "step.mlir"
    path.write_text(f"func.func @main({arguments}) {{\n{body}\nreturn }}")
    return read_graph(read_module(path)).nodes[-1].attributes


def test_a_convolution_has_its_labels_strides_and_groups(tmp_path: Path) -> None:
    found = attributes(
        "%0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],"
        " window = {stride = [2, 2], pad = [[1, 1], [1, 1]], rhs_dilate = [2, 2]}"
        " {batch_group_count = 1 : i64, feature_group_count = 4 : i64}"
        " : (tensor<2x8x8x16xf32>, tensor<3x3x4x32xf32>) -> tensor<2x3x3x32xf32>",
        "%x: tensor<2x8x8x16xf32>, %w: tensor<3x3x4x32xf32>",
        tmp_path,
    )
    assert found["input"] == (0, 3, 1, 2)  # batch, feature, rows, columns
    assert found["kernel"] == (2, 3, 0, 1)
    assert found["output"] == (0, 3, 1, 2)
    assert (found["stride"], found["kernel_dilation"]) == ((2, 2), (2, 2))
    assert found["input_dilation"] == (1, 1)  # not written: one
    assert (found["feature_groups"], found["batch_groups"]) == (4, 1)
    assert found["reversed"] is False


def test_a_product_has_its_batch_and_contracted_dimensions(tmp_path: Path) -> None:
    found = attributes(
        "%0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1]"
        " : (tensor<5x4x8xf32>, tensor<5x8x3xf32>) -> tensor<5x4x3xf32>",
        "%a: tensor<5x4x8xf32>, %b: tensor<5x8x3xf32>",
        tmp_path,
    )
    assert found == {"batch": ((0,), (0,)), "contract": ((2,), (1,))}


def pooling(attributes_: str) -> str:
    return (
        f'%0 = "stablehlo.reduce_window"(%x, %z) <{{{attributes_}}}> ({{\n'
        "^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
        "%m = stablehlo.maximum %a, %b : tensor<f32>\nstablehlo.return %m : tensor<f32>\n"
        "}) : (tensor<8x8xf32>, tensor<f32>) -> "
    )


ARGUMENTS = "%x: tensor<8x8xf32>, %z: tensor<f32>"


def test_a_window_without_strides_and_padding_has_ones_and_zeros(tmp_path: Path) -> None:
    text = pooling("window_dimensions = array<i64: 1, 3>") + "tensor<8x6xf32>"
    assert attributes(text, ARGUMENTS, tmp_path) == {
        "window": (1, 3), "stride": (1, 1), "padding": (0, 0, 0, 0)
    }  # fmt: skip


def test_padding_is_low_and_high_of_each_dimension(tmp_path: Path) -> None:
    written = (
        "window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 2>, "
        "padding = dense<[[0, 0], [1, 2]]> : tensor<2x2xi64>"
    )
    found = attributes(pooling(written) + "tensor<8x5xf32>", ARGUMENTS, tmp_path)
    assert found == {"window": (1, 3), "stride": (1, 2), "padding": (0, 0, 1, 2)}


def test_one_number_of_padding_is_meant_everywhere(tmp_path: Path) -> None:
    written = "window_dimensions = array<i64: 3, 3>, padding = dense<1> : tensor<2x2xi64>"
    found = attributes(pooling(written) + "tensor<8x8xf32>", ARGUMENTS, tmp_path)
    assert found["padding"] == (1, 1, 1, 1)


def test_only_a_whole_scalar_is_read_from_a_constant(tmp_path: Path) -> None:
    def constant(value: str, kind: str) -> dict[str, Any]:
        return attributes(f"%0 = stablehlo.constant dense<{value}> : tensor<{kind}>", "", tmp_path)

    assert constant("-3", "i32") == {"scalar": -3}
    assert constant("12345678901", "i64") == {"scalar": 12345678901}
    assert constant("1.5", "f32") == {}
    assert constant("[1, 2]", "2xi32") == {}


def test_a_reduction_has_its_dimensions(tmp_path: Path) -> None:
    text = (
        "%0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1]"
        " : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>"
    )
    assert attributes(text, ARGUMENTS, tmp_path) == {"dimensions": (1,)}


def test_a_call_into_a_library_has_its_target(tmp_path: Path) -> None:
    text = "%0 = stablehlo.custom_call @cu_threefry2x32(%z) : (tensor<f32>) -> tensor<f32>"
    assert attributes(text, ARGUMENTS, tmp_path) == {"target": "cu_threefry2x32"}


def test_elementwise_operations_have_none(tmp_path: Path) -> None:
    assert attributes("%0 = stablehlo.tanh %x : tensor<8x8xf32>", ARGUMENTS, tmp_path) == {}
