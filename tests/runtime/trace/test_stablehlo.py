"""StableHLO as text becomes the flat graph: calls inlined, branches chosen, loops counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.kernels.graph import Graph, TensorType
from tfdyno.runtime.trace.stablehlo import read_graph, read_module

if TYPE_CHECKING:
    from pathlib import Path

CALL = """
func.func @main(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = func.call @layer(%a) : (tensor<4x8xf32>) -> tensor<4x8xf32> loc("block")
  %1 = func.call @layer(%0) : (tensor<4x8xf32>) -> tensor<4x8xf32> loc("head")
  return %1 : tensor<4x8xf32>
}
func.func private @layer(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.tanh %a : tensor<4x8xf32> loc("act")
  return %0 : tensor<4x8xf32>
}
"""
IF = """
func.func @main(%p: tensor<i1>, %a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.if"(%p) ({
    stablehlo.return %a : tensor<4xf32>
  }, {
    %1 = stablehlo.tanh %a : tensor<4xf32>
    %2 = stablehlo.exponential %1 : tensor<4xf32>
    stablehlo.return %2 : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
WHILE = """
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %last = stablehlo.constant dense<7> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %x = %a) : tensor<i32>, tensor<4xf32>
  cond {
    %c = stablehlo.compare LT, %i, LIMIT, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %n = stablehlo.add %i, %one : tensor<i32>
    %y = stablehlo.tanh %x : tensor<4xf32>
    stablehlo.return %n, %y : tensor<i32>, tensor<4xf32>
  }
  return %0#1 : tensor<4xf32>
}
"""


def graph(text: str, folder: Path) -> Graph:
    path = folder / "step.mlir"
    path.write_text(text)
    return read_graph(read_module(path))


def operations(made: Graph) -> list[str]:
    return [node.op for node in made.nodes]


def test_a_called_function_stands_where_it_is_called(tmp_path: Path) -> None:
    made = graph(CALL, tmp_path)
    assert operations(made) == ["argument", "tanh", "tanh"]
    assert [node.location for node in made.nodes] == ["", "block/act", "head/act"]
    assert made.nodes[2].operands == made.nodes[1].results
    assert made.outputs == list(made.nodes[2].results)
    assert made.values[made.arguments[0]].type == TensorType((4, 8), "f32", 32)


def test_of_two_branches_the_longer_one_counts(tmp_path: Path) -> None:
    made = graph(IF, tmp_path)
    assert operations(made) == ["argument", "argument", "tanh", "exponential"]
    assert made.nodes[2].scope != made.nodes[0].scope  # nothing is fused across its border


def test_a_loop_stands_once_with_its_trips(tmp_path: Path) -> None:
    made = graph(WHILE.replace("LIMIT", "%last"), tmp_path)
    tanh = next(node for node in made.nodes if node.op == "tanh")
    assert tanh.repeats == 7
    state = made.producer(tanh.operands[0])
    assert state.op == "loop_state"
    assert state.attributes["feedback"] == tanh.results[0]
    assert made.producer(made.outputs[0]).op == "loop_result"
    assert made.producer(made.outputs[0]).repeats == 1
    assert made.notes == []


def test_a_loop_of_unknown_length_is_counted_once_and_said(tmp_path: Path) -> None:
    text = WHILE.replace("LIMIT", "%n").replace("(%a:", "(%n: tensor<i32>, %a:")
    made = graph(text.replace("%n = stablehlo.add", "%m = stablehlo.add").replace(
        "stablehlo.return %n,", "stablehlo.return %m,"), tmp_path)  # fmt: skip
    assert next(node for node in made.nodes if node.op == "tanh").repeats == 1
    assert made.notes == ["A loop whose trip count is unknown was counted once."]


@pytest.mark.parametrize(
    ("mlir", "dtype", "size_bytes"),
    [
        ("i1", "pred", 4), ("i8", "s8", 4), ("ui8", "u8", 4), ("i64", "s64", 32), ("i4", "s4", 2),
        ("f16", "f16", 8), ("bf16", "bf16", 8), ("f64", "f64", 32), ("f8E4M3FN", "f8e4m3fn", 4),
        ("complex<f32>", "c64", 32),
    ],
)  # fmt: skip
def test_element_types_are_spelled_as_in_hlo(
    mlir: str, dtype: str, size_bytes: int, tmp_path: Path
) -> None:
    text = f"func.func @main(%a: tensor<4x{mlir}>) -> tensor<4x{mlir}> {{"
    made = graph(f"{text} return %a : tensor<4x{mlir}> }}", tmp_path)
    kind = made.values[0].type
    assert (kind.dtype, kind.bytes) == (dtype, size_bytes)


def test_what_is_no_stablehlo_is_told_with_the_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"step\.mlir is not StableHLO: "):
        graph("not a module", tmp_path)


def test_a_program_without_main_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="the traced program has no main function"):
        graph(CALL.replace("@main", "@other"), tmp_path)


def test_a_tensor_of_unknown_size_is_a_fault_that_names_it(tmp_path: Path) -> None:
    text = "func.func @main(%a: tensor<?x8xf32>) -> tensor<?x8xf32> {return %a : tensor<?x8xf32>}"
    with pytest.raises(ToolError, match=r"a tensor of unknown size \(tensor<\?x8xf32>\)"):
        graph(text, tmp_path)
