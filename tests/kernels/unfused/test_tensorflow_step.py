"""The kernels of a step are found once, and each caller has its own."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from tests.runtime.lowered import graph as graph_of

from tfdyno.kernels.unfused.tensorflow_step import tensorflow_operations


def test_what_one_caller_changes_another_does_not_see() -> None:
    graph = graph_of(
        jax.grad(lambda w, x: jnp.sum(jnp.tanh(x @ w))), jnp.ones((4, 4)), jnp.ones((2, 4))
    )
    first, before = tensorflow_operations(graph), tensorflow_operations(graph)
    assert first == before
    assert first.items
    for each in first.items:
        each.reads.append(-1)
        each.after.add(-1)
    first.items.pop()
    first.outputs.clear()
    assert tensorflow_operations(graph) == before
