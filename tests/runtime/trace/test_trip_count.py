from __future__ import annotations

import jax
import pytest
from jax import lax
from jax import numpy as jnp
from tests.runtime.lowered import library_flops, of_kind, program


def recurrent(x: jax.Array, w: jax.Array) -> jax.Array:
    def cell(state: jax.Array, step: jax.Array) -> jax.Array:
        state = jnp.tanh(step + state @ w)
        return state, state

    start = jnp.zeros((x.shape[1], w.shape[0]))
    return lax.scan(cell, start, x)[1]


ARGUMENTS = (("input", (20, 37, 64)), ("weight", (64, 64)))


def test_a_scan_runs_its_body_once_a_step() -> None:
    made = program(recurrent, *ARGUMENTS, mode="infer")
    (kernel,) = of_kind(made, "gemm")
    assert (kernel.count, kernel.repeats) == (20, 20)
    assert library_flops(made) == 20 * 2 * 37 * 64 * 64
    assert made.notes == ()


def test_the_backward_pass_of_a_scan_runs_as_often() -> None:
    def loss(x: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.sum(recurrent(x, w) ** 2)

    made = program(jax.grad(loss, argnums=1), *ARGUMENTS)
    # forward product, input gradient and weight gradient of 20 steps
    assert library_flops(made) == pytest.approx(3 * 20 * 2 * 37 * 64 * 64)


def test_a_loop_with_a_step_and_an_offset_is_counted() -> None:
    def step(w: jax.Array) -> jax.Array:
        return lax.while_loop(lambda c: c[0] <= 30, lambda c: (c[0] + 4, c[1] @ w), (2, w))[1]

    (kernel,) = of_kind(program(step, ("weight", (64, 64)), mode="infer"), "gemm")
    assert kernel.count == 8  # 2, 6, ..., 30


def test_nested_loops_multiply() -> None:
    def step(w: jax.Array) -> jax.Array:
        def outer(_: jax.Array, a: jax.Array) -> jax.Array:
            return lax.fori_loop(0, 5, lambda _, b: b @ w, a)

        return lax.fori_loop(0, 3, outer, w)

    (kernel,) = of_kind(program(step, ("weight", (64, 64)), mode="infer"), "gemm")
    assert kernel.count == 15


def test_an_unknown_number_of_trips_counts_once_and_says_so() -> None:
    def step(w: jax.Array) -> jax.Array:
        return lax.while_loop(lambda a: jnp.sum(a) < 1.0, lambda a: a @ w, w)

    made = program(step, ("weight", (64, 64)), mode="infer")
    assert [kernel.count for kernel in of_kind(made, "gemm")] == [1]
    assert any("trip count is unknown" in note for note in made.notes)


def test_only_a_slice_of_a_loops_state_is_read_in_each_trip() -> None:
    made = program(recurrent, ("input", (2000, 37, 64)), ("weight", (64, 64)), mode="infer")
    moved = sum((k.read_bytes + k.write_bytes).at(37) for k in made.kernels)
    whole = 2000 * 37 * 64 * 4
    assert moved < 12 * whole  # not 2,000 times the whole sequence
