"""Child process: a traced step, shared among several cards -> what XLA's plan holds on each.

Arguments are told how they are shared; XLA's partitioner (GSPMD: Xu et al., "GSPMD: General and
Scalable Parallelization for ML Computation Graphs", 2021) does the rest, collectives included.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import ToolError
from tfdyno.core.messages.compile import COMPILE_SHARDED, ShardedPlan
from tfdyno.process import child
from tfdyno.runtime.compile import xla_gpu
from tfdyno.runtime.compile.child import told
from tfdyno.runtime.compile.target import target_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxlib.mlir import ir

    from tfdyno.core.base.untyped import Operation
    from tfdyno.core.choose.workload import TensorSpec
    from tfdyno.core.messages.compile import CompileSharded

SHARED = {
    "data parallel": (),
    "optimizer state": ("optimizer",),
    "all states": ("optimizer", "weight"),
    "tensor parallel": ("optimizer", "weight"),
}
"""Way -> roles of the arguments that are divided; the batch is, except in tensor parallel."""
_BATCH = ("input", "target", "sample_weight")
_REPLICATED = "{replicated}"


def compile_sharded(request: CompileSharded, progress: child.Progress) -> ShardedPlan:
    """Compile a step for several cards.

    Raises:
        ToolError: The compiler is missing or refused the step.
    """
    xla_gpu.prepare()
    from tfdyno.runtime.trace.stablehlo import read_module

    start = time.perf_counter()
    module = read_module(request.stablehlo)
    share(module, request.tensors, request.kind, request.cards)
    about = f"compiling {request.title} for {request.cards} cards, {request.kind}"
    with told(about, progress):
        compiled = xla_gpu.compile_module(module, target_text(request.target), cards=request.cards)
    totals = compiled.totals
    return ShardedPlan(
        held_bytes=totals.argument_bytes + totals.temporary_bytes
        + totals.output_bytes - totals.aliased_bytes,
        argument_bytes=totals.argument_bytes,
        seconds_s=time.perf_counter() - start,
    )  # fmt: skip


def dimension(tensor: TensorSpec, kind: str, cards: int) -> int | None:
    """Return the dimension of an argument that cards divide; None: each holds it all.

    The first that divides evenly; of weights in tensor parallel the last, so that every card
    computes a part of a layer's outputs.
    """
    even = [place for place, size in enumerate(tensor.shape) if size >= cards and not size % cards]
    tensor_parallel = kind == "tensor parallel"
    if tensor.role in _BATCH:
        return None if tensor_parallel or 0 not in even else 0
    if tensor.role not in SHARED[kind] or not even:
        return None
    return even[-1] if tensor_parallel else even[0]


def sharding(tensor: TensorSpec, kind: str, cards: int) -> str:
    """Return how an argument is shared, as XLA writes it: ``{devices=[4,1]<=[4]}``."""
    place = dimension(tensor, kind, cards)
    if place is None:
        return _REPLICATED
    tiles = ",".join(str(cards if at == place else 1) for at in range(len(tensor.shape)))
    return f"{{devices=[{tiles}]<=[{cards}]}}"


def share(module: ir.Module, tensors: Sequence[TensorSpec], kind: str, cards: int) -> None:
    """Write into a module how its arguments, and the results that replace them, are shared.

    Raises:
        ToolError: The module takes other arguments than were traced.
    """
    from jaxlib.mlir import ir

    main = next(each for each in module.body.operations if _name(each) == "main")
    if len(main.arguments) != len(tensors):
        raise ToolError(
            f"the step takes {len(main.arguments)} arguments, not {len(tensors)} as it was traced"
        )
    with module.context:
        arguments = [{one.name: one.attr for one in each} for each in main.arg_attrs]
        results = [{one.name: one.attr for one in each} for each in main.result_attrs]
        for given, tensor in zip(arguments, tensors, strict=True):
            given["mhlo.sharding"] = ir.StringAttr.get(sharding(tensor, kind, cards))
            replaced = given.get("tf.aliasing_output")
            if replaced is not None:
                results[ir.IntegerAttr(replaced).value]["mhlo.sharding"] = given["mhlo.sharding"]
        main.arg_attrs = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in arguments])
        main.result_attrs = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in results])
        count = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), cards)
        module.operation.attributes["mhlo.num_partitions"] = count


def _name(operation: Operation) -> str:
    return operation.name.value if hasattr(operation, "arg_attrs") else ""


if __name__ == "__main__":
    child.leave(child.serve(compile_sharded, COMPILE_SHARDED))
