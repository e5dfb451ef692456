"""Which operations of a traced graph are kernels, and what they read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
from jax import lax
from jax import numpy as jnp
from tests.runtime.lowered import graph as graph_of

from tfdyno.kernels.unfused.tensorflow_ops import Operations, buffer_of, operations_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.runtime.lowered import Argument

X: Argument = ("input", (8, 32))


def kernels(step: Callable[..., Any], *arguments: Argument) -> Operations:
    return operations_of(graph_of(step, *arguments))


def kinds(step: Callable[..., Any], *arguments: Argument) -> list[str]:
    return [each.kind for each in kernels(step, *arguments).items]


def test_views_and_constants_are_no_kernels() -> None:
    def step(x: jax.Array) -> jax.Array:
        return jnp.tanh(jnp.reshape(x.T, (32, 2, 4)) + jnp.arange(4.0)[None, None])

    assert kinds(step, X) == ["add", "tanh"]


def test_a_kernel_reads_through_views_but_writes_over_unmoved_elements_only() -> None:
    plain, moved = (
        kernels(lambda x: jnp.exp(jnp.reshape(jnp.tanh(x), (32, 8))), X).items,
        kernels(lambda x: jnp.exp(jnp.tanh(x).T), X).items,
    )
    assert plain[1].reads == plain[1].over == plain[0].writes
    assert moved[1].reads == moved[0].writes
    assert moved[1].over == []


def test_a_broadcast_is_not_written_over() -> None:
    (total, added) = kernels(lambda x: jnp.sum(x, 1)[:, None] + x, X).items
    assert added.over == [0]
    assert set(added.reads) == {*total.writes, 0}


def test_rows_are_looked_up_before_they_are_cast() -> None:
    def step(table: jax.Array, tokens: jax.Array) -> jax.Array:
        return jnp.take(table.astype("bfloat16"), tokens, axis=0)

    made = kernels(step, ("weight", (1000, 8)), ("input", (4,), "int32"))
    assert "convert" not in [each.kind for each in made.items]
    gather = next(each for each in made.items if each.kind == "gather")
    assert made.graph.arguments[0] in gather.reads


def test_random_numbers_are_one_kernel_with_one_result() -> None:
    def step(key: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.where(jax.random.uniform(key, x.shape) < 0.5, x, 0.0)

    made = kernels(step, ("input", (2,), "uint32"), X)
    assert [each.kind for each in made.items] == ["group", "compare", "select"]
    assert [made.bytes(buffer) for buffer in made.items[0].writes] == [8 * 32 * 4]


def test_the_gradient_of_a_pooling_reads_what_was_pooled_and_needs_no_edges() -> None:
    def pool(x: jax.Array) -> jax.Array:
        return jnp.sum(lax.reduce_window(x, -jnp.inf, lax.max, (3, 3), (2, 2), "SAME"))

    made = kernels(jax.grad(pool), ("input", (8, 8)))
    gradient = next(each for each in made.items if each.kind == "select_and_scatter")
    assert 0 in gradient.reads
    assert not {"pad", "slice", "select_window"} & {each.kind for each in made.items}


def test_a_loss_called_for_two_outputs_is_two_pairs_of_kernels() -> None:
    def loss(w: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        losses = []
        for logits in (x @ w, (2.0 * x) @ w):
            with jax.named_scope("sparse_categorical_crossentropy"):
                logs = jax.nn.log_softmax(logits)
                losses.append(jnp.sum(jax.nn.one_hot(y, 16) * logs))
        return sum(losses, start=jnp.zeros(()))

    target: Argument = ("target", (8,), "int32")
    arguments: list[Argument] = [("weight", (32, 16)), X, target]
    found = kinds(jax.value_and_grad(loss), *arguments)
    assert found.count("loss") == 4
    assert not {"exponential", "log"} & set(found)


def test_a_loop_that_begins_with_zeros_takes_their_memory() -> None:
    def step(x: jax.Array) -> jax.Array:
        def body(carry: jax.Array, row: jax.Array) -> jax.Array:
            return carry + row, jnp.tanh(carry)

        return lax.scan(body, jnp.zeros(32), x)

    made = kernels(step, X)
    states = [each for each in made.items if each.kind == "loop_state"]
    assert {made.bytes(each.writes[0]) for each in states} >= {32 * 4, 8 * 32 * 4}


def test_the_buffer_of_a_reshaped_slice_is_the_slice() -> None:
    graph = graph_of(lambda x: jnp.reshape(x[:4], (128,)) * 2.0, X)
    multiply = next(node for node in graph.nodes if node.op == "multiply")
    views = [buffer_of(graph, value) for value in multiply.operands]
    assert any(graph.producer(buffer).op == "slice" and same for buffer, same in views)
