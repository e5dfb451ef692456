"""The quick route: a traced step -> its kernels and buffer plan without a GPU compiler."""

from __future__ import annotations

import time
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING

from tfdyno.core.base.collection import nothing_collected
from tfdyno.core.base.errors import ToolError
from tfdyno.core.choose.program import TODAY, Program
from tfdyno.core.messages.trace import FUSED_STEPS, QuickPrograms
from tfdyno.kernels.fusion.memory_order import late_peaks, ordered, reordered_peaks
from tfdyno.kernels.fusion.rule import fuse, fuse_for_memory
from tfdyno.kernels.graph import Graph
from tfdyno.kernels.memory.graph_memory import GraphMemory
from tfdyno.kernels.memory.liveness import buffer_plan
from tfdyno.kernels.records import KernelMaker, Sizes
from tfdyno.kernels.unfused.per_op import per_op
from tfdyno.kernels.unfused.per_primitive import primitive_kernels
from tfdyno.runtime.trace.stablehlo import read_graph, read_module
from tfdyno.runtime.trace.widening import has_bfloat16, widened

if TYPE_CHECKING:
    from pathlib import Path

    from jaxlib.mlir import ir

    from tfdyno.core.choose.program import BufferPlan, Lowering
    from tfdyno.core.choose.workload import TensorSpec, Trace
    from tfdyno.kernels.launch import Fusion


def programs_of(
    module: ir.Module, trace: Trace, lowering: Lowering = TODAY, folder: Path | None = None
) -> QuickPrograms:
    """Return the quick programs of a traced step.

    ``folder`` is where the same step lies as other cards have it, if some do.

    Raises:
        ToolError: As ``program_of``.
    """
    with nothing_collected():
        graph, plain = read_graph(module, lowering), read_graph(module)
        fused, by_layer, by_primitive = _programs(graph, plain, trace)
        made = QuickPrograms(program=fused, per_op=by_layer, per_primitive=by_primitive)
        made = replace(made, **_as_others_have_it(folder, trace, lowering))
        if not (has_bfloat16(graph) and has_bfloat16(plain)):
            return made
        fused, by_layer, by_primitive = _programs(widened(graph), widened(plain), trace)
    return replace(made, widened=fused, per_op_widened=by_layer, per_primitive_widened=by_primitive)


def _as_others_have_it(folder: Path | None, trace: Trace, lowering: Lowering) -> dict[str, Program]:
    """Return the programs as XLA runs them, of ``FUSED_STEPS`` that there are."""
    if folder is None:
        return {}
    paths = {name: folder / f"{name}.mlirbc" for name in FUSED_STEPS}
    modules = {name: read_module(path) for name, path in paths.items() if path.exists()}
    return {
        name: _traced_program(
            read_graph(module, lowering), trace, by_operation=False, held=read_graph(module)
        )
        for name, module in modules.items()
    }


def _programs(lowered: Graph, step: Graph, trace: Trace) -> tuple[Program, Program, Program | None]:
    fused = _traced_program(lowered, trace, by_operation=False, held=step)
    by_layer = _traced_program(step, trace, by_operation=True)
    before = lowered.lowering == "before"
    return fused, by_layer, None if before else primitive_program(step, by_layer, trace)


def _traced_program(
    graph: Graph, trace: Trace, *, by_operation: bool, held: Graph | None = None
) -> Program:
    return program_of(
        graph,
        held=held,
        by_operation=by_operation,
        batch_size=trace.batch_size,
        marker=trace.marker,
        trace_sha256=trace.stablehlo_sha256,
        tensors=trace.tensors,
        mode=trace.workload.mode,
    )


def primitive_program(graph: Graph, by_layer: Program, trace: Trace) -> Program:
    """Return the step with a kernel for each primitive; it holds what ``by_layer`` holds."""
    kernels = primitive_kernels(
        graph,
        Sizes(trace.batch_size, trace.marker),
        trace.tensors,
        trace.workload.mode,
        frozenset(trace.cudnn_layers),
    )
    return replace(by_layer, kernels=kernels)


def program_of(
    step: ir.Module | Graph,
    *,
    batch_size: int,
    marker: int,
    trace_sha256: str,
    tensors: tuple[TensorSpec, ...],
    mode: str,
    by_operation: bool = False,
    lowering: Lowering = TODAY,
    held: Graph | None = None,
) -> Program:
    """Price a step, as StableHLO or read already, whose ``main`` takes ``tensors`` in order.

    ``lowering``: whose program it becomes; a step that is read already was read for its own.

    ``held``: the same step read as ``before``, whose buffers are planned; None: the step itself.

    ``by_operation``: as a framework without a compiler runs it, with TensorFlow's memory.

    ``marker`` is the prime that divides the batch and no other dimension, or 0: then all numbers
    hold at ``batch_size`` only. ``mode`` is ``train`` or ``infer``.

    Raises:
        ToolError: The module has no ``main`` or a tensor of unknown size.
    """
    start = time.perf_counter()
    graph = step if isinstance(step, Graph) else read_graph(step, lowering)
    regions = per_op(graph) if by_operation else graph
    sizes = Sizes(batch_size, marker)
    fusion = ordered(regions, fuse(regions), sizes, tensors, mode)
    maker = KernelMaker(regions, fusion, sizes, tensors, mode)
    kernels = tuple(kernel for launch in fusion.launches for kernel in maker.kernels(launch))
    buffers, notes = None, graph.notes
    if by_operation:
        try:
            buffers = GraphMemory(graph, sizes, tensors, mode).plan()
        except ToolError as error:
            notes = [*notes, f"Memory is that of XLA's order: {error}"]
    if buffers is None:
        if held is not None and held.lowering != graph.lowering:
            regions = held
            fusion = ordered(regions, fuse(regions), sizes, tensors, mode)
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
        lowering=graph.lowering,
    )


def _planned(
    graph: Graph, fusion: Fusion, sizes: Sizes, tensors: tuple[TensorSpec, ...], mode: str
) -> BufferPlan:
    buffers = buffer_plan(graph, fusion, sizes, tensors, mode)
    return replace(
        buffers,
        reordered=reordered_peaks(graph, fusion, sizes, tensors, mode),
        late=late_peaks(graph, fusion, sizes, tensors, mode),
    )
