"""Small steps lowered by JAX and read as TensorFlow's graph mode would run them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import jax

from tfdyno.core.workload import TensorSpec
from tfdyno.runtime.graph_memory import GraphMemory
from tfdyno.runtime.kernels import Sizes
from tfdyno.runtime.stablehlo import read_graph

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.runtime.lowered import Argument

    from tfdyno.core.workload import TensorRole
    from tfdyno.runtime.graph import Graph


def graph_of(
    step: Callable[..., Any], *arguments: Argument
) -> tuple[Graph, tuple[TensorSpec, ...]]:
    """The traced graph of a function whose arguments have these roles, shapes (and dtypes)."""
    full = [item if len(item) == 3 else (*item, "float32") for item in arguments]
    structs = [jax.ShapeDtypeStruct(shape, dtype) for _, shape, dtype in full]
    traced = jax.jit(step, keep_unused=True).trace(*structs)
    module = traced.lower(lowering_platforms=("cuda",)).compiler_ir("stablehlo")
    tensors = tuple(
        TensorSpec(
            name=f"layer_{number}/kernel",
            role=cast("TensorRole", role),
            shape=shape,
            dtype=dtype,
            bytes=math.prod(shape) * jax.numpy.dtype(dtype).itemsize,
        )
        for number, (role, shape, dtype) in enumerate(full)
    )
    return read_graph(module), tensors


def memory_of(
    step: Callable[..., Any],
    *arguments: Argument,
    batch_size: int = 37,
    marker: int = 37,
    mode: str = "train",
) -> GraphMemory:
    """What a function holds in graph mode."""
    graph, tensors = graph_of(step, *arguments)
    return GraphMemory(graph, Sizes(batch_size, marker), tensors, mode)
