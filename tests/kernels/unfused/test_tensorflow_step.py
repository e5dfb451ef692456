"""The kernels of a step are found once, and each caller has its own."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from tests.runtime.lowered import graph as graph_of

from tfdyno.kernels.unfused.tensorflow_step import tensorflow_operations

W, X = ("weight", (4, 4)), ("input", (2, 4))


def test_what_one_caller_changes_another_does_not_see() -> None:
    def loss(w: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.tanh(x @ w))

    graph = graph_of(jax.grad(loss), W, X)
    first, before = tensorflow_operations(graph), tensorflow_operations(graph)
    assert first == before
    assert len(first.items) > 3  # two products, tanh and its gradient
    for each in first.items:
        each.reads.append(-1)
        each.after.add(-1)
    first.items.pop()
    first.outputs.clear()
    assert tensorflow_operations(graph) == before
