"""Small steps lowered by JAX, as the quick route gets them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import jax

from tfdyno.core.base.interval import Scaled
from tfdyno.core.choose.workload import TensorSpec
from tfdyno.kernels.memory.graph_memory import GraphMemory
from tfdyno.kernels.records import Sizes
from tfdyno.runtime.trace.quick import program_of
from tfdyno.runtime.trace.stablehlo import read_graph

if TYPE_CHECKING:
    from tfdyno.core.choose.program import Kernel, Lowering, Program
    from tfdyno.core.choose.workload import TensorRole
    from tfdyno.kernels.graph import Graph

Shape = tuple[int, ...]
Argument = tuple[str, Shape] | tuple[str, Shape, str]
Step = Callable[..., Any]
LIBRARY = ("convolution", "gemm")


def program(
    step: Step,
    *arguments: Argument,
    batch_size: int = 37,
    marker: int = 37,
    mode: str = "train",
    by_operation: bool = False,
    lowering: Lowering = "before",
) -> Program:
    """The quick program of a function whose arguments have these roles, shapes (and dtypes)."""
    return program_of(
        graph(step, *arguments, lowering=lowering),
        batch_size=batch_size,
        marker=marker,
        trace_sha256="",
        tensors=tensors(*arguments),
        mode=mode,
        by_operation=by_operation,
    )


def tensors(*arguments: Argument) -> tuple[TensorSpec, ...]:
    """What a trace would say of such arguments."""
    return tuple(
        TensorSpec(
            name=f"layer_{number}/kernel",
            role=cast("TensorRole", role),
            shape=shape,
            dtype=dtype,
            bytes=math.prod(shape) * jax.numpy.dtype(dtype).itemsize,
        )
        for number, (role, shape, dtype) in enumerate(map(_full, arguments))
    )


def graph(step: Step, *arguments: Argument, lowering: Lowering = "before") -> Graph:
    """The operations of such a function as the quick route reads them."""
    structs = [jax.ShapeDtypeStruct(shape, dtype) for _, shape, dtype in map(_full, arguments)]
    traced = jax.jit(step, keep_unused=True).trace(*structs)
    module = traced.lower(lowering_platforms=("cuda",)).compiler_ir("stablehlo")
    return read_graph(module, lowering)


def _full(argument: Argument) -> tuple[str, Shape, str]:
    return argument if len(argument) == 3 else (*argument, "float32")


def memory_of(
    step: Step,
    *arguments: Argument,
    batch_size: int = 37,
    marker: int = 37,
    mode: str = "train",
) -> GraphMemory:
    """What such a function holds in TensorFlow's graph mode."""
    sizes = Sizes(batch_size, marker)
    return GraphMemory(graph(step, *arguments), sizes, tensors(*arguments), mode)


def library_flops(made: Program, batch_size: int | None = None) -> float:
    """FLOPs of convolutions and matrix products at a batch."""
    kernels = (kernel for kernel in made.kernels if kernel.kind in LIBRARY)
    total = sum((kernel.flops for kernel in kernels), start=Scaled())
    return total.at(made.batch_size if batch_size is None else batch_size)


def of_kind(made: Program, *kinds: str) -> list[Kernel]:
    """The kernels of these kinds in order."""
    return [kernel for kernel in made.kernels if kernel.kind in kinds]
