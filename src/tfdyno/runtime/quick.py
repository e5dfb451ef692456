"""The quick route: a traced step -> its kernels and buffer plan without a GPU compiler."""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import TYPE_CHECKING

from tfdyno.core.program import Program
from tfdyno.runtime.fusion import fuse
from tfdyno.runtime.kernels import KernelMaker, Sizes
from tfdyno.runtime.liveness import buffer_plan
from tfdyno.runtime.stablehlo import read_graph, read_module

if TYPE_CHECKING:
    from pathlib import Path

    from jaxlib.mlir import ir

    from tfdyno.core.workload import TensorSpec


def program_of(
    module: ir.Module,
    *,
    batch_size: int,
    marker: int,
    trace_sha256: str,
    tensors: tuple[TensorSpec, ...],
    mode: str,
) -> Program:
    """Price a StableHLO module whose ``main`` takes ``tensors`` in order.

    ``marker`` is the prime that divides the batch and no other dimension, or 0: then all numbers
    hold at ``batch_size`` only. ``mode`` is ``train`` or ``infer``.

    Raises:
        ToolError: The module has no ``main`` or a tensor of unknown size.
    """
    start = time.perf_counter()
    graph = read_graph(module)
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


def program_of_file(
    path: Path,
    *,
    batch_size: int,
    marker: int,
    trace_sha256: str,
    tensors: tuple[TensorSpec, ...],
    mode: str,
) -> Program:
    """``program_of`` for a StableHLO file (text, bytecode or portable artifact).

    Raises:
        UsageError: The file is not StableHLO.
        ToolError: As ``program_of``.
    """
    return program_of(
        read_module(path),
        batch_size=batch_size,
        marker=marker,
        trace_sha256=trace_sha256,
        tensors=tensors,
        mode=mode,
    )
