"""The quick route: a traced step -> its kernels and buffer plan without a GPU compiler."""

from __future__ import annotations

import time
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from tfdyno.core.codec import to_builtins
from tfdyno.core.errors import ToolError
from tfdyno.core.program import Program
from tfdyno.runtime.fusion import fuse, fuse_for_memory
from tfdyno.runtime.graph import Graph
from tfdyno.runtime.graph_memory import GraphMemory
from tfdyno.runtime.kernels import KernelMaker, Sizes
from tfdyno.runtime.liveness import buffer_plan
from tfdyno.runtime.memory_order import ordered, reordered_peaks
from tfdyno.runtime.per_op import per_op
from tfdyno.runtime.stablehlo import read_graph
from tfdyno.runtime.widening import has_bfloat16, widened

if TYPE_CHECKING:
    from jaxlib.mlir import ir

    from tfdyno.core.program import BufferPlan
    from tfdyno.core.workload import TensorSpec, Trace
    from tfdyno.runtime.launch import Fusion


def programs_of(module: ir.Module, trace: Trace) -> dict[str, Any]:
    """The quick programs of a traced step as a child hands them over.

    ``program`` is the step as XLA runs it, ``per_op`` as a framework does that runs one operation
    after another. They serve every card but those without bfloat16: where the step has any, these
    get ``widened`` and ``per_op_widened``, the same step in float32; else those are None.

    Raises:
        ToolError: As ``program_of``.
    """
    graph = read_graph(module)
    wide = widened(graph) if has_bfloat16(graph) else None
    return {
        name: to_builtins(
            program_of(
                one,
                by_operation=by_operation,
                batch_size=trace.batch_size,
                marker=trace.marker,
                trace_sha256=trace.stablehlo_sha256,
                tensors=trace.tensors,
                mode=trace.workload.mode,
            )
        )
        if one
        else None
        for name, one, by_operation in (
            ("program", graph, False),
            ("widened", wide, False),
            ("per_op", graph, True),
            ("per_op_widened", wide, True),
        )
    }


def program_of(
    step: ir.Module | Graph,
    *,
    batch_size: int,
    marker: int,
    trace_sha256: str,
    tensors: tuple[TensorSpec, ...],
    mode: str,
    by_operation: bool = False,
) -> Program:
    """Price a step, as StableHLO or read already, whose ``main`` takes ``tensors`` in order.

    ``by_operation``: as a framework without a compiler runs it, with TensorFlow's memory.

    ``marker`` is the prime that divides the batch and no other dimension, or 0: then all numbers
    hold at ``batch_size`` only. ``mode`` is ``train`` or ``infer``.

    Raises:
        ToolError: The module has no ``main`` or a tensor of unknown size.
    """
    start = time.perf_counter()
    graph = step if isinstance(step, Graph) else read_graph(step)
    regions = per_op(graph) if by_operation else graph
    sizes = Sizes(batch_size, marker)
    fusion = ordered(regions, fuse(regions), sizes, tensors, mode)
    maker = KernelMaker(regions, fusion, sizes, tensors, mode)
    kernels = tuple(maker.kernel(launch) for launch in fusion.launches)
    buffers, notes = None, graph.notes
    if by_operation:
        try:
            buffers = GraphMemory(graph, sizes, tensors, mode).plan()
        except ToolError as error:
            notes = [*notes, f"Memory is that of XLA's order: {error}"]
    if buffers is None:
        buffers = _planned(regions, fusion, sizes, tensors, mode)
        dear = ordered(regions, fuse_for_memory(regions), sizes, tensors, mode)
        buffers = replace(buffers, kept=_planned(regions, dear, sizes, tensors, mode))
    return Program(
        trace_sha256=trace_sha256,
        route="quick",
        family="",
        batch_size=batch_size,
        marker=marker,
        kernels=kernels,
        buffers=buffers,
        seconds_s=time.perf_counter() - start,
        versions={"jaxlib": version("jaxlib")},
        notes=tuple(dict.fromkeys(notes)),
    )


def _planned(
    graph: Graph, fusion: Fusion, sizes: Sizes, tensors: tuple[TensorSpec, ...], mode: str
) -> BufferPlan:
    buffers = buffer_plan(graph, fusion, sizes, tensors, mode)
    return replace(buffers, reordered=reordered_peaks(graph, fusion, sizes, tensors, mode))
