"""The quick route: a traced step -> its kernels and buffer plan without a GPU compiler."""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from tfdyno.core.codec import to_builtins
from tfdyno.core.program import Program
from tfdyno.runtime.fusion import fuse
from tfdyno.runtime.graph import Graph
from tfdyno.runtime.kernels import KernelMaker, Sizes
from tfdyno.runtime.liveness import buffer_plan
from tfdyno.runtime.stablehlo import read_graph
from tfdyno.runtime.widening import has_bfloat16, widened

if TYPE_CHECKING:
    from jaxlib.mlir import ir

    from tfdyno.core.workload import TensorSpec, Trace


def programs_of(module: ir.Module, trace: Trace) -> dict[str, Any]:
    """The quick programs of a traced step as a child hands them over.

    ``program`` serves every card but those without bfloat16: where the step has any, they get
    ``widened``, the same step in float32; else that is None.

    Raises:
        ToolError: As ``program_of``.
    """
    graph = read_graph(module)
    graphs = {"program": graph, "widened": widened(graph) if has_bfloat16(graph) else None}
    return {
        name: to_builtins(
            program_of(
                one,
                batch_size=trace.batch_size,
                marker=trace.marker,
                trace_sha256=trace.stablehlo_sha256,
                tensors=trace.tensors,
                mode=trace.workload.mode,
            )
        )
        if one
        else None
        for name, one in graphs.items()
    }


def program_of(
    step: ir.Module | Graph,
    *,
    batch_size: int,
    marker: int,
    trace_sha256: str,
    tensors: tuple[TensorSpec, ...],
    mode: str,
) -> Program:
    """Price a step, as StableHLO or read already, whose ``main`` takes ``tensors`` in order.

    ``marker`` is the prime that divides the batch and no other dimension, or 0: then all numbers
    hold at ``batch_size`` only. ``mode`` is ``train`` or ``infer``.

    Raises:
        ToolError: The module has no ``main`` or a tensor of unknown size.
    """
    start = time.perf_counter()
    graph = step if isinstance(step, Graph) else read_graph(step)
    fusion = fuse(graph)
    sizes = Sizes(batch_size, marker)
    maker = KernelMaker(graph, fusion, sizes, tensors, mode)
    kernels = tuple(maker.kernel(launch) for launch in fusion.launches)
    return Program(
        trace_sha256=trace_sha256,
        route="quick",
        family="",
        batch_size=batch_size,
        marker=marker,
        kernels=kernels,
        buffers=buffer_plan(graph, fusion, sizes, tensors, mode),
        seconds_s=time.perf_counter() - start,
        versions={"jaxlib": version("jaxlib")},
        notes=tuple(dict.fromkeys(graph.notes)),
    )
