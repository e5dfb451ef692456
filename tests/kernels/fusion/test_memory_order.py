"""The order of launches that holds little at a time: steps worked by hand, and any graph."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import jax
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import numpy as jnp
from tests.runtime.lowered import graph, program, tensors

from tfdyno.kernels.fusion.memory_order import (
    by_memory,
    from_weights_late,
    ordered,
    reordered_peaks,
)
from tfdyno.kernels.fusion.rule import fuse
from tfdyno.kernels.launch import results_of
from tfdyno.kernels.layers import phase_of
from tfdyno.kernels.memory.liveness import buffer_plan
from tfdyno.kernels.records import Sizes

if TYPE_CHECKING:
    from tests.runtime.lowered import Argument, Step

    from tfdyno.kernels.graph import Graph
    from tfdyno.kernels.launch import Launch

WIDTH, BATCH = 512, 37 * 8
BLOCK = BATCH * WIDTH * 4
"""Bytes of one product of the batch with a matrix."""
SIZES = Sizes(BATCH, 37)


def sums(count: int) -> tuple[Step, tuple[Argument, ...]]:
    """Products that are all made first and all added up afterwards, as the program says."""

    def step(x: jax.Array, *weights: jax.Array) -> tuple[jax.Array, ...]:
        products = [x @ w for w in weights]
        return tuple(jnp.sum(each, axis=1) for each in products)

    weights: list[Argument] = [("weight", (WIDTH, WIDTH))] * count
    return step, (("input", (BATCH, WIDTH)), *weights)


def is_runnable(made: Graph, launches: list[Launch]) -> bool:
    """Whether nothing runs before what it reads."""
    makers = {value for launch in launches for value in results_of(made, launch)}
    there: set[int] = set()
    for launch in launches:
        own = set(results_of(made, launch))
        if any(value in makers and value not in there | own for value in launch.reads):
            return False
        there |= own
    return True


def test_what_can_be_added_up_at_once_is_not_kept() -> None:
    step, arguments = sums(4)
    made = graph(step, *arguments)
    fusion = fuse(made)
    plan = buffer_plan(made, fusion, SIZES, tensors(*arguments), "train")
    assert plan.temporary_bytes.at(BATCH) == 4 * BLOCK
    less = replace(fusion, launches=by_memory(made, fusion.launches))
    plan = buffer_plan(made, less, SIZES, tensors(*arguments), "train")
    assert plan.temporary_bytes.at(BATCH) == BLOCK


def test_a_plan_tells_what_the_other_order_saves_and_keeps_the_programs_own() -> None:
    step, arguments = sums(4)
    made = program(step, *arguments, batch_size=BATCH).buffers
    assert made.temporary_bytes.at(BATCH) == 4 * BLOCK
    assert made.reordering_saves_bytes(BATCH) == 3 * BLOCK
    served = program(step, *arguments, batch_size=BATCH, mode="infer").buffers
    assert served.reordered == ()
    assert served.reordering_saves_bytes(BATCH) == 0.0


def test_a_step_with_a_loop_stays_in_its_order() -> None:
    def step(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 5, lambda _, y: y @ w, x) @ w

    arguments: tuple[Argument, ...] = (("input", (BATCH, WIDTH)), ("weight", (WIDTH, WIDTH)))
    made = graph(step, *arguments)
    launches = fuse(made).launches
    assert by_memory(made, launches) is launches
    assert reordered_peaks(made, fuse(made), SIZES, tensors(*arguments), "train") == ()


def test_where_nothing_is_computed_again_the_order_is_the_programs() -> None:
    step, arguments = sums(3)
    made = graph(step, *arguments)
    fusion = fuse(made)
    assert ordered(made, fusion, SIZES, tensors(*arguments), "train") is fusion


KERNEL = WIDTH * WIDTH * 4
"""Bytes of one kernel as floats; it is kept in a quarter of that."""


def rounded(count: int) -> tuple[Step, tuple[Argument, ...]]:
    """Kernels in 8 bits that are all made floats first and read one after the other."""

    def step(x: jax.Array, *kernels: jax.Array) -> jax.Array:
        wide = [kernel.astype("float32") * 0.5 + 1.0 for kernel in kernels]
        for kernel in jax.lax.optimization_barrier(wide):
            x = x @ kernel
        return x

    kernels: list[Argument] = [("state", (WIDTH, WIDTH), "int8")] * count
    return step, (("input", (BATCH, WIDTH)), *kernels)


def test_the_least_that_xla_may_hold_is_of_weights_made_ready_when_they_are_read() -> None:
    step, arguments = rounded(4)
    made = program(step, *arguments, batch_size=BATCH).buffers
    resident = BATCH * WIDTH * 4 * 2 + 4 * KERNEL // 4
    assert made.peak_at(BATCH) == resident + 4 * KERNEL + BLOCK
    assert made.least_at(BATCH) == resident + KERNEL + 2 * BLOCK


def test_where_weights_are_read_as_they_are_no_order_holds_less() -> None:
    step, arguments = sums(4)
    made = program(step, *arguments, batch_size=BATCH).buffers
    assert made.late == ()
    assert made.least_at(BATCH) == made.peak_at(BATCH)


@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.booleans()), min_size=1,
                max_size=12))  # fmt: skip
def test_every_launch_runs_once_and_after_what_it_reads(
    wanted: list[tuple[int, int, bool]],
) -> None:
    def step(x: jax.Array, w: jax.Array) -> jax.Array:
        values = [x]
        for left, right, product in wanted:
            a, b = values[left % len(values)], values[right % len(values)]
            values.append(a @ jnp.tanh(w) if product else jnp.sum(a * b, axis=1, keepdims=True) + b)
        return jnp.sum(values[-1])

    arguments: tuple[Argument, ...] = (("input", (BATCH, 64)), ("weight", (64, 64)))
    made = graph(step, *arguments)
    launches = fuse(made).launches
    late = from_weights_late(made, launches, set(made.arguments[1:]))
    for found in (by_memory(made, launches), late):
        assert sorted(map(id, found)) == sorted(map(id, launches))
        assert is_runnable(made, found)


BLOCKS, WIDER = 6, 4


def stacked(*, again: bool) -> tuple[Step, tuple[Argument, ...]]:
    """A training step of blocks that are four times as wide inside, kept or computed again."""

    def block(x: jax.Array, wide: jax.Array, narrow: jax.Array) -> jax.Array:
        return x + jnp.tanh(jnp.tanh(x) @ wide) @ narrow

    def loss(weights: tuple[jax.Array, ...], x: jax.Array) -> jax.Array:
        for wide, narrow in zip(weights[::2], weights[1::2], strict=True):
            x = (jax.checkpoint(block) if again else block)(x, wide, narrow)
        return jnp.sum(x * x)

    def step(x: jax.Array, *weights: jax.Array) -> tuple[jax.Array, ...]:
        gradients = jax.grad(loss)(weights, x)
        return tuple(w - 0.1 * g for w, g in zip(weights, gradients, strict=True))

    wide: Argument = ("weight", (WIDTH, WIDER * WIDTH))
    narrow: Argument = ("weight", (WIDER * WIDTH, WIDTH))
    return step, (("input", (BATCH, WIDTH)), *[wide, narrow] * BLOCKS)


def test_what_jax_computes_again_waits_for_the_gradient_that_asks_for_it() -> None:
    step, arguments = stacked(again=True)
    made = graph(step, *arguments)
    launches = fuse(made).launches
    phases = [{phase_of(made.nodes[root].location) for root in one.roots} for one in launches]
    first = next(n for n, own in enumerate(phases) if "recompute" in own)
    assert any("backward" in own for own in phases[:first])
    assert not any({"forward", "recompute"} <= own for own in phases)
    assert is_runnable(made, launches)
    assert is_runnable(made, by_memory(made, launches))


def test_blocks_that_jax_computes_again_keep_what_goes_into_them_alone() -> None:
    held = {}
    for again in (False, True):
        step, arguments = stacked(again=again)
        plan = program(step, *arguments, batch_size=BATCH).buffers
        held[again] = plan.temporary_bytes.at(BATCH) / BLOCK
    # Kept, each block holds its wide product; computed again, what goes into it, and one of them
    # holds its insides: two wide values with their gradients at the most.
    assert held[False] >= BLOCKS * WIDER
    assert held[True] <= BLOCKS + 4 * WIDER
