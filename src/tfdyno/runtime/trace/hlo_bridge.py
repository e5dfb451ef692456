"""HLO as TensorFlow writes it -> StableHLO, which the quick and the exact route read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxlib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.runtime.trace.stablehlo import new_context
from tfdyno.runtime.trace.trip_count import final_counters

if TYPE_CHECKING:
    from collections.abc import Iterator


def stablehlo_of(hlo: bytes) -> ir.Module:
    """Convert a serialized ``HloModuleProto`` of TF2XLA to StableHLO; donated arguments survive.

    TF2XLA leaves thousands of operations that do nothing once the program is compiled again:
    ``mhlo.copy``, which the GPU compiler cannot legalize, and reshapes to the same shape. Each is
    replaced by its operand. Functions that hold the conditions and bodies of loops are taken in,
    so that the loops can be read.

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
        PassManager.parse("builtin.module(inline)").run(module.operation)
        for call in [op for op in _operations(module.operation) if op.name == "func.call"]:
            _take_in(call, ir.SymbolTable(module.operation))
        operations = list(_operations(module.operation))
        if any(_is_open(op) for op in operations):
            raise UsageError(
                "the size of a tensor in the step depends on the data",
                why="tf.unique, tf.boolean_mask and tf.where with one argument make such tensors",
                remedy="keep the size and mask instead, for example tf.where(condition, x, 0)",
            )
        for operation in filter(_does_nothing, operations):
            operation.results[0].replace_all_uses_with(operation.operands[0])
            operation.erase()
        for loop in _operations(module.operation):
            if loop.name == "stablehlo.while":
                _settle_counters(loop)
        PassManager.parse("builtin.module(symbol-dce)").run(module.operation)
    return module


def _does_nothing(operation: ir.Operation) -> bool:
    if operation.name == "stablehlo.reshape":
        return bool(operation.results[0].type == operation.operands[0].type)
    return bool(operation.name == "mhlo.copy")


def _settle_counters(loop: ir.Operation) -> None:
    """Put numbers for the counters that a loop returns: the backward loop counts by them."""
    for position, value in final_counters(loop, _constant).items():
        result = loop.results[position]
        attribute = ir.DenseElementsAttr.get_splat(
            result.type, ir.IntegerAttr.get(ir.RankedTensorType(result.type).element_type, value)
        )
        with ir.InsertionPoint(loop), loop.location:
            number = ir.Operation.create(
                "stablehlo.constant", results=[result.type], attributes={"value": attribute}
            )
        result.replace_all_uses_with(number.result)


def _constant(value: ir.Value) -> int | None:
    owner = None if isinstance(value, ir.BlockArgument) else value.owner
    if owner is None or owner.name != "stablehlo.constant":
        return None
    found = owner.attributes["value"]
    scalar = isinstance(found, ir.DenseIntElementsAttr) and found.type.rank == 0
    return int(found[0]) if scalar else None


def _take_in(call: ir.Operation, table: ir.SymbolTable) -> None:
    """Replace a call by the operations of its function, as MLIR's own pass leaves conditions."""
    name = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
    block = table[name].operation.regions[0].blocks[0]
    inside = [view.operation for view in block.operations]
    if any(len(op.regions) for op in inside):
        return
    known = dict(zip(block.arguments, call.operands, strict=True))
    for operation in inside[:-1]:
        copy = operation.clone(ip=ir.InsertionPoint(call))
        for number, operand in enumerate(operation.operands):
            copy.operands[number] = known[operand]
        known.update(zip(operation.results, copy.results, strict=True))
    for result, returned in zip(call.results, inside[-1].operands, strict=True):
        result.replace_all_uses_with(known[returned])
    call.erase()


def _is_open(operation: ir.Operation) -> bool:
    kinds = (result.type for result in operation.results)
    return any(isinstance(kind, ir.ShapedType) and not kind.has_static_shape for kind in kinds)


def _operations(root: ir.Operation) -> Iterator[ir.Operation]:
    for region in root.regions:
        for block in region.blocks:
            for view in block.operations:
                yield view.operation
                yield from _operations(view.operation)
