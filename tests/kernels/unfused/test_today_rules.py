"""Kernels of Keras 3 on TensorFlow, where JAX would run others."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import jax
from jax import lax
from jax import numpy as jnp
from tests.runtime.lowered import graph as graph_of

from tfdyno.kernels.records import Sizes
from tfdyno.kernels.unfused.tensorflow_ops import Operations, operations_of
from tfdyno.kernels.unfused.tensorflow_rules import with_gradients_of_tensorflow
from tfdyno.kernels.unfused.today_rules import as_today

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.runtime.lowered import Argument

    from tfdyno.core.base.untyped import Value

BATCH = 37
IMAGES: Argument = ("input", (BATCH, 8, 8, 16))
VECTOR: Argument = ("weight", (16,))
ELEMENTS = BATCH * 8 * 8 * 16


def today(step: Callable[..., Any], *arguments: Argument) -> Operations:
    found = operations_of(graph_of(step, *arguments))
    with_gradients_of_tensorflow(found)
    as_today(found, Sizes(BATCH, BATCH))
    return found


def large(found: Operations) -> Counter[str]:
    """Kinds of the kernels that read or write a whole feature map."""

    def size(buffer: int) -> int:
        kind = found.type_of(buffer)
        return kind.elements if kind else 0

    return Counter(
        each.kind
        for each in found.items
        if max(map(size, [*each.reads, *each.writes]), default=0) >= ELEMENTS
    )


def normalised(x: jax.Array, scale: jax.Array, shift: jax.Array) -> jax.Array:
    """Batch normalisation as Keras' JAX backend writes it."""
    mean = jnp.mean(x, (0, 1, 2), keepdims=True)
    inverse = lax.rsqrt(jnp.var(x, (0, 1, 2), keepdims=True) + 1e-3) * scale
    return x * inverse + (shift - mean * inverse)


def test_statistics_take_the_mean_once_and_one_kernel_for_squared_differences() -> None:
    found = today(normalised, IMAGES, VECTOR, VECTOR)
    # Mean, SquaredDifference, Mean, Mul, AddV2: TensorFlow's graph of one normalisation
    assert large(found) == {"reduce": 2, "square": 1, "multiply": 1, "add": 1}


def test_the_gradient_of_a_normalisation_is_that_of_tensorflow() -> None:
    def step(x: jax.Array, scale: jax.Array, shift: jax.Array) -> Value:
        def loss(x: jax.Array, scale: jax.Array, shift: jax.Array) -> jax.Array:
            with jax.named_scope("norm"):
                return normalised(x, scale, shift)

        result, pull = jax.vjp(loss, x, scale, shift)
        return result, pull(jnp.tanh(result))

    found = large(today(step, IMAGES, VECTOR, VECTOR))
    # 2 sums of the gradients beside the 2 means; a tile and its scaling for each of the 2 means;
    # x - mean again; x * dy, dy * inverse, 2 (x - mean), its product; one AddN of three
    assert found["reduce"] == 4
    assert (found["tile"], found["scale"]) == (2, 2)
    assert found["subtract"] == 1
    assert found["multiply"] == 5
    assert found["add"] == 2


def test_a_rectifier_and_a_softmax_are_one_kernel_each() -> None:
    def step(x: jax.Array) -> Value:
        _, pull = jax.vjp(lambda x: jnp.where(x > 0, x, 0) + 0.0, x)
        return pull(jnp.tanh(x))

    assert large(today(step, IMAGES)) == {"tanh": 1, "select": 1}

    def softmax(x: jax.Array) -> jax.Array:
        raised = jnp.exp(x - lax.stop_gradient(jnp.max(x, -1, keepdims=True)))
        return raised / jnp.sum(raised, -1, keepdims=True)

    assert large(today(softmax, IMAGES)) == {"group": 1}


def test_products_over_heads_and_float32_images_are_moved() -> None:
    def heads(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.einsum("bqnh,bknh->bnqk", x, y)

    found = today(heads, ("input", (BATCH, 8, 8, 16)), ("input", (BATCH, 8, 8, 16)))
    assert Counter(each.kind for each in found.items) == {"dot_general": 1, "transpose": 2}

    def convolution(x: jax.Array, w: jax.Array) -> jax.Array:
        layout = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=layout)

    for dtype, moved in (("float32", 2), ("bfloat16", 0), ("float16", 0)):
        weights: Argument = ("weight", (3, 3, 16, 16), dtype)
        found = today(convolution, ("input", (BATCH, 8, 8, 16), dtype), weights)
        assert sum(each.kind == "transpose" for each in found.items) == moved
