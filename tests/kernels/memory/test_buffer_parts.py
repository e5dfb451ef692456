"""What bytes are for, on a step small enough to name every tensor of it."""

from __future__ import annotations

import jax
import pytest
from jax import numpy as jnp
from tests.runtime.lowered import graph, tensors

from tfdyno.core.base.interval import Scaled
from tfdyno.core.choose.program import Buffer
from tfdyno.kernels.memory.buffer_parts import (
    LARGEST,
    PARTS,
    TemporaryParts,
    largest,
    part_of_role,
    parts_bytes,
)
from tfdyno.kernels.records import Sizes

ARGUMENTS = (("input", (37, 8)), ("weight", (8, 4)))


def step(x: jax.Array, w: jax.Array) -> jax.Array:
    def loss(w: jax.Array) -> jax.Array:
        return jnp.sum(jnp.tanh(x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)))

    return jax.grad(loss)(w)


def buffer(part: str, size: float) -> Buffer:
    amount = Scaled(fixed=size, per_sample=1.0)
    return Buffer(name="", layer="", part=part, dtype="f32", shape=(), bytes=amount)


@pytest.mark.parametrize(
    ("role", "part"),
    [
        ("weight", "weights"),
        ("state", "weights"),
        ("optimizer", "optimizer"),
        ("input", "inputs"),
        ("target", "inputs"),
        ("seed", "inputs"),
    ],
)
def test_an_argument_is_for_what_its_role_says(role: str, part: str) -> None:
    assert part_of_role(role) == part


def test_a_temporary_is_told_by_its_size_and_by_what_it_is_made_of() -> None:
    traced = graph(step, *ARGUMENTS)
    parts = TemporaryParts(traced, Sizes(37, 37), tensors(*ARGUMENTS))
    found = [
        (traced.nodes[value.producer].op, value.type.shape, parts.of(value.producer, value.type))
        for value in traced.values
    ]
    assert ("tanh", (37, 4), "activations") in found
    assert ("convert", (37, 8), "activations") in found  # the input in 16 bits
    assert ("convert", (8, 4), "weights") in found  # the weight in 16 bits
    (gradient,) = (traced.values[value] for value in traced.outputs)
    assert parts.of(gradient.producer, gradient.type) == "gradients"


def test_a_frozen_kernel_taken_back_from_int8_is_no_gradient() -> None:
    arguments = (
        ("input", (37, 8)),
        ("weight", (8, 2)),
        ("state", (8, 4), "int8"),
        ("state", (4,)),
    )

    def step(x: jax.Array, w: jax.Array, kernel: jax.Array, scale: jax.Array) -> jax.Array:
        @jax.custom_vjp
        def product(x: jax.Array) -> jax.Array:
            return (jnp.round(x).astype(jnp.int8) @ kernel).astype(jnp.float32) / scale

        def backward(_: None, upstream: jax.Array) -> tuple[jax.Array]:
            return (upstream @ (kernel.astype(jnp.float32) / scale).T,)

        product.defvjp(lambda x: (product(x), None), backward)
        return jax.grad(lambda w: jnp.sum(product(jnp.tanh(x @ w @ w.T))))(w)

    traced = graph(step, *arguments)
    parts = TemporaryParts(traced, Sizes(37, 37), tensors(*arguments))
    found = {
        (traced.nodes[value.producer].op, parts.of(value.producer, value.type))
        for value in traced.values
        if value.type.shape == (8, 4) and traced.nodes[value.producer].op != "argument"
    }
    assert found >= {("convert", "weights"), ("divide", "weights")}
    assert {part for _, part in found} == {"weights"}
    (gradient,) = (traced.values[value] for value in traced.outputs)
    assert parts.of(gradient.producer, gradient.type) == "gradients"


def test_the_bytes_of_every_part_are_the_sum_of_its_buffers() -> None:
    found = parts_bytes([buffer("weights", 8.0), buffer("inputs", 2.0), buffer("weights", 1.0)])
    assert tuple(found) == PARTS
    assert found["weights"] == Scaled(fixed=9.0, per_sample=2.0)
    assert found["gradients"] == Scaled()


def test_the_ten_largest_are_named_largest_first() -> None:
    held = [buffer("weights", float(size)) for size in range(12)]
    found = largest(held, 1)
    assert [each.bytes.fixed for each in found] == [float(size) for size in range(11, 1, -1)]
    assert len(found) == LARGEST
