"""Two dense layers with a function between them, and their gradients: what XLA keeps of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Value

ROWS, WIDTH = 4096, 2048


def _gelu(x: jax.Array) -> jax.Array:
    return jax.nn.gelu(x, approximate=False)


STEPS: dict[str, tuple[Callable[..., Any], str]] = {
    "silu float16": (jax.nn.silu, "float16"),
    "silu float32": (jax.nn.silu, "float32"),
    "silu bfloat16": (jax.nn.silu, "bfloat16"),
    "elu bfloat16": (jax.nn.elu, "bfloat16"),
    "gelu float32": (_gelu, "float32"),
    "gelu by tanh bfloat16": (jax.nn.gelu, "bfloat16"),
    "relu float16": (jax.nn.relu, "float16"),
    "softmax bfloat16": (jax.nn.softmax, "bfloat16"),
}


def module_of(name: str) -> Value:
    """A step as JAX lowers it."""
    activation, dtype = STEPS[name]

    def step(x: jax.Array, first: jax.Array, second: jax.Array) -> Value:
        def loss(first: jax.Array, second: jax.Array) -> jax.Array:
            return ((activation(x @ first) @ second).astype("float32") ** 2).sum()

        return jax.value_and_grad(loss, (0, 1))(first, second)

    shapes = [(ROWS, WIDTH), (WIDTH, WIDTH), (WIDTH, WIDTH)]
    traced = jax.jit(step).trace(*(jax.ShapeDtypeStruct(shape, dtype) for shape in shapes))
    return traced.lower(lowering_platforms=("cuda",)).compiler_ir("stablehlo")
