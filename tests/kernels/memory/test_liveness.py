from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import pytest
from jax import numpy as jnp
from tests.runtime.lowered import Step, program

from tfdyno.core.base.interval import Scaled

if TYPE_CHECKING:
    from tfdyno.core.choose.program import BufferPlan

WIDTH = 512
MATRIX = WIDTH * WIDTH * 4
ROW = WIDTH * 4


def train() -> Step:
    def loss(weights: jax.Array, x: jax.Array) -> jax.Array:
        for w in weights:
            x = jnp.maximum(x @ w, 0.0)
        return jnp.sum(x * x)

    def step(x: jax.Array, *weights: jax.Array) -> jax.Array:
        gradients = jax.grad(loss)(weights, x)
        return tuple(w - 0.1 * g for w, g in zip(weights, gradients, strict=True))

    return step


def mlp(depth: int, batch_size: int = 37 * 64) -> BufferPlan:
    weights = [("weight", (WIDTH, WIDTH))] * depth
    return program(train(), ("input", (batch_size, WIDTH)), *weights, batch_size=batch_size).buffers


def test_arguments_and_results_are_exact() -> None:
    plan = mlp(4)
    assert plan.argument_bytes.fixed == 4 * MATRIX
    assert plan.argument_bytes.per_sample == pytest.approx(ROW)
    assert plan.output_bytes == plan.aliased_bytes
    assert plan.aliased_bytes.fixed == 4 * MATRIX


def test_every_layer_more_keeps_its_activations_until_the_backward_pass() -> None:
    shallow, deep = mlp(4).temporary_bytes, mlp(12).temporary_bytes
    # a layer keeps what its product made and what the next one multiplies: two rows a sample
    assert deep.per_sample - shallow.per_sample == pytest.approx(8 * 2 * ROW)


def test_the_parts_add_up_to_the_peak() -> None:
    plan = mlp(6)
    batch_size = 37 * 64
    parts = sum(part.at(batch_size) for part in plan.parts_bytes.values())
    assert parts == pytest.approx(plan.peak_bytes.at(batch_size))
    assert plan.parts_bytes["weights"].fixed == 6 * MATRIX
    assert max(live.at(batch_size) for _, live in plan.live_curve) == pytest.approx(parts)


def test_the_curve_runs_from_start_to_end_in_at_most_200_points() -> None:
    curve = mlp(80).live_curve
    assert len(curve) <= 200
    shares = [share for share, _ in curve]
    assert shares[0] == 0
    assert shares == sorted(shares)
    assert shares[-1] <= 1


def test_at_a_small_batch_the_gradients_make_the_peak() -> None:
    plan = mlp(8)
    assert plan.peak_at(37 * 64) == pytest.approx(plan.peak_bytes.at(37 * 64))
    # at one sample the activations vanish; some gradient beside the weights remains
    assert plan.peak_at(1) >= 8 * MATRIX + MATRIX
    assert plan.peak_at(1) >= plan.peak_bytes.at(1)
    assert sum(plan.parts_at(1).values()) == pytest.approx(plan.peak_at(1))
    assert len(plan.envelope_parts) == len(plan.envelope)
    for moment, parts in zip(plan.envelope, plan.envelope_parts, strict=True):
        held = sum(parts.values(), start=Scaled())
        assert held.fixed == pytest.approx(moment.fixed)
        assert held.per_sample == pytest.approx(moment.per_sample)


def test_the_peak_at_another_batch_is_that_of_a_program_made_there() -> None:
    small, large = mlp(8, 37 * 8), mlp(8, 37 * 64)
    assert large.peak_at(37 * 8) == pytest.approx(small.peak_at(37 * 8), rel=0.01)
    assert small.peak_at(37 * 64) == pytest.approx(large.peak_at(37 * 64), rel=0.01)


def test_a_fused_kernel_may_write_over_what_it_is_the_last_to_read() -> None:
    def step(x: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array]:
        y = jnp.tanh(x)  # kept: a product reads it
        return y @ w, jnp.sin(y) @ w

    plan = program(
        step, ("input", (37, 8, WIDTH)), ("weight", (WIDTH, WIDTH)), mode="infer"
    ).buffers
    assert plan.temporary_bytes.per_sample == pytest.approx(2 * 8 * ROW)


def test_a_librarys_result_is_not_written_over() -> None:
    plan = program(
        lambda x, w: jnp.tanh(x @ w) @ w,
        ("input", (37, 8, WIDTH)),
        ("weight", (WIDTH, WIDTH)),
        mode="infer",
    ).buffers
    assert plan.temporary_bytes.per_sample == pytest.approx(2 * 8 * ROW)


def test_the_ten_largest_buffers_come_largest_first() -> None:
    sizes = [buffer.bytes.at(37 * 64) for buffer in mlp(12).largest]
    assert len(sizes) == 10
    assert sizes == sorted(sizes, reverse=True)


def test_inference_aliases_nothing() -> None:
    plan = program(
        lambda x, w: x @ w, ("input", (37, WIDTH)), ("weight", (WIDTH, WIDTH)), mode="infer"
    ).buffers
    assert plan.aliased_bytes.at(37) == 0
    assert plan.output_bytes.per_sample == pytest.approx(ROW)
    assert plan.peak_bytes.at(37) == pytest.approx(MATRIX + 2 * 37 * ROW)


def test_the_sigmoid_of_a_swish_is_kept_where_the_card_would_rather_keep_it() -> None:
    # as XLA does on an H200: EfficientNet holds three tensors of every swish there
    def layers(function: Step) -> Step:
        def step(x: jax.Array, *weights: jax.Array) -> jax.Array:
            def loss(weights: jax.Array) -> jax.Array:
                result = x
                for weight in weights:
                    result = function(result @ weight)
                return jnp.sum(result)

            return jax.grad(loss)(weights)

        return step

    batch_size, depth = 37 * 64, 6
    weights = [("weight", (WIDTH, WIDTH))] * depth
    swish, cube = (
        program(layers(f), ("input", (batch_size, WIDTH)), *weights, batch_size=batch_size)
        for f in (jax.nn.silu, lambda x: x * x * x)
    )
    assert swish.buffers.kept
    assert cube.buffers.kept
    more = swish.buffers.kept.peak_at(batch_size) - swish.buffers.peak_at(batch_size)
    assert depth - 2 <= more / (batch_size * ROW) <= depth + 1
    assert cube.buffers.kept.peak_at(batch_size) == cube.buffers.peak_at(batch_size)


def test_the_exp_of_a_softmax_is_no_reason_to_keep_it() -> None:
    def step(x: jax.Array, weight: jax.Array) -> jax.Array:
        def loss(weight: jax.Array) -> jax.Array:
            return -jnp.sum(jax.nn.log_softmax(x @ weight)[:, 0])

        return weight - jax.grad(loss)(weight)

    batch_size = 37 * 64
    arguments = (("input", (batch_size, 64)), ("weight", (64, 8192)))
    plan = program(step, *arguments, batch_size=batch_size).buffers.kept
    logits = batch_size * 8192 * 4
    assert plan
    assert plan.temporary_bytes.at(batch_size) < 2.5 * logits


def test_the_gradient_of_max_pooling_holds_two_arrays_of_what_is_pooled() -> None:
    # ResNet-50, compiled: f16[64,112,112,64] filled with zeros beside the maximum, both until then
    side, channels, batch_size = 64, 16, 37

    def step(x: jax.Array, kernel: jax.Array) -> jax.Array:
        def loss(kernel: jax.Array) -> jax.Array:
            y = jax.lax.conv_general_dilated(
                x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            pooled = jax.lax.reduce_window(
                y, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"
            )
            return jnp.sum(pooled * pooled)

        return kernel - jax.grad(loss)(kernel)

    arguments = (("input", (batch_size, side, side, 3)), ("weight", (3, 3, 3, channels)))
    plan = program(step, *arguments, batch_size=batch_size).buffers
    pooled = batch_size * side * side * channels * 4
    # what is pooled, its gradient half as large, the places found, and the two arrays
    assert plan.temporary_bytes.at(batch_size) == pytest.approx(4.5 * pooled, rel=0.01)
