"""What the backward pass reads, and when it is made; how much is kept: test_graph_memory.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
from jax import numpy as jnp
from tests.runtime.lowered import graph as graph_of

from tfdyno.kernels.unfused.tensorflow_ops import Operation, Operations, operations_of
from tfdyno.kernels.unfused.tensorflow_rules import with_gradients_of_tensorflow

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.runtime.lowered import Argument

W: Argument = ("weight", (32, 32))
X: Argument = ("input", (8, 32))


def gradient(function: Callable[[Any], Any]) -> Operations:
    """The kernels of the gradient of a layer ``function(x @ w) @ w`` before a loss."""

    def loss(w: jax.Array, x: jax.Array) -> jax.Array:
        with jax.named_scope("layer"):
            x = function(x @ w) @ w
        return jnp.sum(jnp.tanh(x))

    made = operations_of(graph_of(jax.value_and_grad(loss), W, X))
    with_gradients_of_tensorflow(made)
    return made


def backward(made: Operations) -> list[Operation]:
    return [each for each in made.items if made.backward[each.node]]


def read_by_backward(made: Operations) -> set[str]:
    """Kinds of the layer's forward kernels whose results the backward pass reads."""
    producers = made.producers()
    late = [each for each in made.items if made.backward[each.node] or each.after]
    names = {id(each) for each in late}
    found = (producers[b] for each in late for b in each.reads if b in producers)
    return {each.kind for each in found if id(each) not in names and in_layer(made, each)}


def in_layer(made: Operations, each: Operation) -> bool:
    return "layer" in made.graph.nodes[each.node].location


def test_a_rectifiers_gradient_reads_its_output() -> None:
    made = gradient(jax.nn.relu)
    assert read_by_backward(made) == {"maximum"}


def test_a_gradient_that_reads_the_input_computes_the_rest_again() -> None:
    made = gradient(jax.nn.silu)
    copies = [each for each in made.items if each.writes[0] >= len(made.graph.values)]
    assert {each.kind for each in copies} >= {"exponential", "divide"}
    assert read_by_backward(made) == {"dot_general", "multiply"}  # the input, and the output


def test_what_only_serves_a_gradient_waits_for_it() -> None:
    made = gradient(jnp.tanh)  # 1 - y² is part of the forward pass of the trace
    producers = made.producers()
    late = [each for each in made.items if each.after]
    assert late
    for each in late:
        assert all(made.backward[producers[buffer].node] for buffer in each.after)


def test_a_penalty_on_weights_waits_for_nothing() -> None:
    def loss(w: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.tanh(x @ w)) + 0.01 * jnp.sum(w * w)

    made = operations_of(graph_of(jax.value_and_grad(loss), W, X))
    with_gradients_of_tensorflow(made)
    own = [each for each in made.items if each.reads and set(each.reads) == {0}]
    assert own
    assert not any(each.after for each in own)


def test_a_variance_keeps_no_centred_copy() -> None:
    made = gradient(lambda x: x * jax.lax.rsqrt(jnp.var(x, axis=0) + 1e-3))
    forward = {w for each in made.items if not each.after for w in each.writes}
    forward -= {w for each in backward(made) for w in each.writes}
    producers = made.producers()
    read = {b for each in made.items if each.after or made.backward[each.node] for b in each.reads}
    large = [producers[b] for b in read & forward if b in producers and made.bytes(b) == 8 * 32 * 4]
    kept = {each.kind for each in large if in_layer(made, each)}
    assert kept == {"dot_general", "multiply"}  # the input and the result


def test_a_softmax_keeps_its_output_only() -> None:
    made = gradient(lambda x: jnp.exp(x) / jnp.sum(jnp.exp(x), axis=-1, keepdims=True))
    same = gradient(_softmax)
    assert "exponential" in read_by_backward(made)  # two exponentials: no softmax
    assert "exponential" not in read_by_backward(same)


def _softmax(x: jax.Array) -> jax.Array:
    powers = jnp.exp(x - jnp.max(x, axis=-1, keepdims=True))
    return powers / jnp.sum(powers, axis=-1, keepdims=True)


def test_rows_of_a_table_stay_rows_until_something_makes_them_whole() -> None:
    def loss(w: jax.Array, tokens: jax.Array) -> jax.Array:
        return jnp.sum(jnp.take(w, tokens, axis=0) ** 2)

    def plain(w: jax.Array, tokens: jax.Array) -> jax.Array:
        return w - 0.1 * jax.grad(loss)(w, tokens)

    def averaged(w: jax.Array, m: jax.Array, tokens: jax.Array) -> jax.Array:
        gradient = jax.grad(loss)(w, tokens)
        return m + 0.1 * (gradient - m)

    table: Argument = ("weight", (1000, 8))
    tokens: Argument = ("input", (4, 2), "int32")
    rows, whole = 4 * 2 * 8 * 4, 1000 * 8 * 4
    found = sizes(plain, table, tokens)
    assert found[-3:] == [("scatter", rows), ("multiply", rows), ("subtract", 0)]
    found = sizes(averaged, table, ("optimizer", (1000, 8)), tokens)
    assert found[-4:] == [
        ("scatter", rows),
        ("subtract", whole),
        ("multiply", whole),
        ("add", whole),
    ]


def sizes(step: Callable[..., Any], *arguments: Argument) -> list[tuple[str, int]]:
    made = operations_of(graph_of(step, *arguments))
    with_gradients_of_tensorflow(made)
    return [(each.kind, made.bytes(each.writes[0])) for each in made.items]
