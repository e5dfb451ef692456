"""Plans of small steps, worked by hand; real models are held against TensorFlow by scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import pytest
from jax import numpy as jnp
from tests.runtime.lowered import memory_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.runtime.lowered import Argument

    from tfdyno.kernels.memory.graph_memory import GraphMemory

WIDTH, BATCH = 128, 37 * 64
MATRIX, ROW = WIDTH * WIDTH * 4, WIDTH * 4


def mlp(
    depth: int, activation: Callable[[jax.Array], jax.Array] = jax.nn.relu, batch_size: int = BATCH
) -> GraphMemory:
    def loss(weights: tuple[jax.Array, ...], x: jax.Array) -> jax.Array:
        for w in weights:
            x = activation(x @ w)
        return jnp.sum(x)

    def step(x: jax.Array, *weights: jax.Array) -> jax.Array:
        gradients = jax.grad(loss)(weights, x)
        return tuple(w - 0.1 * g for w, g in zip(weights, gradients, strict=True))

    weights = [("weight", (WIDTH, WIDTH))] * depth
    return memory_of(step, ("input", (batch_size, WIDTH)), *weights, batch_size=batch_size)


def rows_kept_by_a_layer(activation: Callable[[jax.Array], jax.Array]) -> float:
    """Tensors of the batch that a layer more keeps until the backward pass."""
    shallow, deep = (mlp(depth, activation).plan().peak_bytes for depth in (4, 12))
    return (deep.per_sample - shallow.per_sample) / (8 * ROW)


@pytest.mark.parametrize(
    ("activation", "rows"),
    [
        # the rectifier writes over the product, and its gradient reads what it wrote
        (jax.nn.relu, 1),
        (jax.nn.relu6, 1),
        (jax.nn.elu, 1),
        (jax.nn.selu, 1),
        (jnp.tanh, 1),
        (jax.nn.sigmoid, 1),
        # these gradients read the input, the next product the output
        (jax.nn.silu, 2),
        (jax.nn.leaky_relu, 2),
        (jax.nn.softplus, 2),
        # x · (relu6(x + 3) / 6) is built of operations: x, relu6, a sixth of it, the product
        (jax.nn.hard_swish, 4),
        # TensorFlow builds GELU of products: half the input, 1 + erf, the derivative, the output
        (lambda x: jax.nn.gelu(x, approximate=False), 4),
        (jax.nn.softmax, 1),
    ],
    ids=[
        *"relu relu6 elu selu tanh sigmoid silu leaky_relu softplus hard_swish gelu softmax".split()
    ],
)
def test_an_activation_keeps_what_tensorflows_gradient_reads(
    activation: Callable[[jax.Array], jax.Array], rows: int
) -> None:
    assert rows_kept_by_a_layer(activation) == pytest.approx(rows, abs=0.05)


def test_arguments_are_exact_and_the_parts_add_up_to_the_peak() -> None:
    plan = mlp(6).plan()
    assert plan.argument_bytes.fixed == 6 * MATRIX
    assert plan.argument_bytes.per_sample == pytest.approx(ROW)
    peak = plan.peak_bytes.at(BATCH)
    assert sum(part.at(BATCH) for part in plan.parts_bytes.values()) == pytest.approx(peak)
    assert plan.parts_bytes["weights"].fixed == 6 * MATRIX
    total = plan.argument_bytes + plan.output_bytes + plan.temporary_bytes
    assert total.at(BATCH) - plan.aliased_bytes.at(BATCH) == pytest.approx(peak)
    assert max(live.at(BATCH) for _, live in plan.live_curve) == pytest.approx(peak)


def test_the_peak_at_another_batch_is_that_of_a_program_made_there() -> None:
    plan = mlp(6).plan()
    for batch in (37 * 2, 37 * 512):
        assert plan.peak_at(batch) == pytest.approx(mlp(6, batch_size=batch).plan().peak_at(batch))


def test_what_depends_on_no_data_is_computed_at_the_start() -> None:
    # momentum * velocity waits for nothing: all of them lie in memory when the peak comes
    def step(x: jax.Array, w: jax.Array, v: jax.Array) -> jax.Array:
        gradient = jax.grad(lambda w: jnp.sum(jnp.tanh(jnp.tanh(x @ w) @ w)))(w)
        v = 0.9 * v - 0.1 * gradient
        return w + v, v

    kinds = [("input", (37, WIDTH)), ("weight", (WIDTH, WIDTH)), ("optimizer", (WIDTH, WIDTH))]
    memory = memory_of(step, *kinds)
    first = [each.kind for each in memory.schedule[:2]]
    assert "multiply" in first
    plan = memory.plan()
    assert plan.peak_bytes.fixed >= 3 * MATRIX + MATRIX  # both old values, the product, a gradient


def test_rows_of_an_embedding_get_no_gradient_as_large_as_the_table() -> None:
    table = 1 << 16

    def step(tokens: jax.Array, w: jax.Array) -> jax.Array:
        gradient = jax.grad(lambda w: jnp.sum(jnp.tanh(jnp.take(w, tokens, axis=0))))(w)
        return w - 0.1 * gradient

    memory = memory_of(step, ("input", (37, 4), "int32"), ("weight", (table, 16)))
    plan = memory.plan()
    assert plan.peak_bytes.at(37) < 1.1 * table * 16 * 4


def test_cross_entropy_keeps_one_tensor_of_the_size_of_the_logits() -> None:
    classes = 4096

    def loss(w: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        logits = x @ w
        with jax.named_scope("compile_loss"), jax.named_scope("sparse_categorical_crossentropy"):
            logs = jax.nn.log_softmax(logits)
            return -jnp.mean(jnp.sum(jax.nn.one_hot(y, classes) * logs, axis=-1))

    def step(x: jax.Array, y: jax.Array, w: jax.Array) -> jax.Array:
        return w - 0.1 * jax.grad(loss)(w, x, y)

    target: Argument = ("target", (BATCH,), "int32")
    inputs: list[Argument] = [("input", (BATCH, 8)), target, ("weight", (8, classes))]
    plan = memory_of(step, *inputs, batch_size=BATCH).plan()
    assert plan.peak_bytes.per_sample == pytest.approx(classes * 4 + 8 * 4 + 4, rel=0.01)


def test_inference_releases_every_layer() -> None:
    def step(x: jax.Array, *weights: jax.Array) -> jax.Array:
        for w in weights:
            x = jax.nn.relu(x @ w)
        return x

    weights = [("weight", (WIDTH, WIDTH))] * 6
    plan = memory_of(step, ("input", (37, WIDTH)), *weights, mode="infer").plan()
    # the input, a product, and the next one beside it
    assert plan.peak_bytes.per_sample == pytest.approx(3 * ROW)
    assert plan.peak_bytes.fixed == 6 * MATRIX


def test_the_allocator_needs_little_more_than_the_tensors() -> None:
    memory = mlp(8)
    done = memory.allocations()
    assert done.requested_peak_bytes == pytest.approx(memory.plan().peak_at(BATCH))
    assert 1.0 <= done.footprint_bytes / done.requested_peak_bytes < 1.2
