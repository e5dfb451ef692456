"""HLO as TensorFlow writes it -> StableHLO, which the quick and the exact route read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxlib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager

from tfdyno.core.errors import ToolError, UsageError
from tfdyno.runtime.stablehlo import new_context

if TYPE_CHECKING:
    from collections.abc import Iterator


def stablehlo_of(hlo: bytes) -> ir.Module:
    """Convert a serialized ``HloModuleProto`` of TF2XLA to StableHLO; donated arguments survive.

    TF2XLA leaves thousands of ``mhlo.copy`` operations that the GPU compiler cannot legalize and
    that copy nothing once the program is compiled again: they are replaced by their operand.

    Raises:
        ToolError: The bytes are not HLO, or the conversion fails.
        UsageError: A tensor has no fixed size.
    """
    context = new_context()
    try:
        module = ir.Module.parse(_jax.mlir.hlo_to_stablehlo(hlo), context)
    except (ir.MLIRError, ValueError, RuntimeError) as error:
        reason = (str(error).splitlines() or ["no reason given"])[0]
        raise ToolError("TensorFlow's HLO cannot be read as StableHLO", why=reason) from None
    with context:
        # The conditions and bodies of loops are functions; what reads them looks inside the loop.
        PassManager.parse("builtin.module(inline)").run(module.operation)
        operations = list(_operations(module.operation))
        if any(_is_open(op) for op in operations):
            raise UsageError(
                "the size of a tensor in the step depends on the data",
                why="tf.unique, tf.boolean_mask and tf.where with one argument make such tensors",
                remedy="keep the size and mask instead, for example tf.where(condition, x, 0)",
            )
        for copy in [op for op in operations if op.name == "mhlo.copy"]:
            copy.results[0].replace_all_uses_with(copy.operands[0])
            copy.erase()
    return module


def _is_open(operation: ir.Operation) -> bool:
    kinds = (result.type for result in operation.results)
    return any(isinstance(kind, ir.ShapedType) and not kind.has_static_shape for kind in kinds)


def _operations(root: ir.Operation) -> Iterator[ir.Operation]:
    for region in root.regions:
        for block in region.blocks:
            for view in block.operations:
                yield view.operation
                yield from _operations(view.operation)
