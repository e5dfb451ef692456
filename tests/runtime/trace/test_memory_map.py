"""The memory of a step at a batch: moments, tensors and layers, worked by hand."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import jax
import pytest
from jax import numpy as jnp
from tests.runtime.lowered import graph, memory_of, program, tensors

from tfdyno.core.messages.memory import MapMemory
from tfdyno.runtime.trace.memory_map import map_of

if TYPE_CHECKING:
    from tests.runtime.lowered import Argument

    from tfdyno.core.choose.memory_map import MemoryMap

WIDTH, TRACED, ASKED = 512, 37 * 64, 64
MATRIX, ROW = WIDTH * WIDTH * 4, WIDTH * 4
POOL = 1e12


def step(x: jax.Array, *weights: jax.Array) -> tuple[jax.Array, ...]:
    def loss(weights: tuple[jax.Array, ...]) -> jax.Array:
        y = x
        for w in weights:
            y = jnp.maximum(y @ w, 0.0)
        return jnp.sum(y * y)

    gradients = jax.grad(loss)(weights)
    return tuple(w - 0.1 * g for w, g in zip(weights, gradients, strict=True))


def arguments(depth: int) -> tuple[Argument, ...]:
    weights: list[Argument] = [("weight", (WIDTH, WIDTH))] * depth
    return (("input", (TRACED, WIDTH)), *weights)


def mapped(
    depth: int = 6, execution: Literal["xla", "graph"] = "xla", pool_bytes: float = POOL
) -> MemoryMap:
    given = arguments(depth)
    request = MapMemory(
        tensors=tensors(*given), mode="train", traced_batch_size=TRACED, marker=37,
        batch_size=ASKED, execution=execution, widen=False, keeps=False, pool_bytes=pool_bytes,
        stablehlo=Path(),
    )  # fmt: skip
    return map_of(graph(step, *given), request)


def test_the_peak_is_that_of_the_plan_at_the_batch_asked() -> None:
    found = mapped()
    plan = program(step, *arguments(6), batch_size=TRACED).buffers
    assert found.peak_bytes == pytest.approx(plan.peak_at(ASKED))
    assert found.parts_bytes["weights"] == 6 * MATRIX
    assert found.parts_bytes["inputs"] == ASKED * ROW
    assert sum(found.parts_bytes.values()) == pytest.approx(found.peak_bytes)


def test_the_graph_holds_what_its_executor_holds() -> None:
    found = mapped(execution="graph")
    memory = memory_of(step, *arguments(6), batch_size=TRACED)
    assert found.peak_bytes == pytest.approx(memory.plan().peak_at(ASKED))
    need = found.allocator
    assert need is not None
    assert need.requested_peak_bytes == pytest.approx(found.peak_bytes)
    assert need.requested_peak_bytes <= need.in_use_peak_bytes <= need.footprint_bytes
    assert need.fragment_bytes == need.footprint_bytes - need.in_use_peak_bytes
    assert need.largest_request_bytes == MATRIX
    assert need.failed_bytes == 0.0


def test_a_pool_that_is_too_small_fails_at_a_request() -> None:
    found = mapped(execution="graph", pool_bytes=6.5 * MATRIX)
    need = found.allocator
    assert need is not None
    assert 0 < need.failed_bytes <= MATRIX
    assert need.free_bytes < MATRIX
    assert not need.is_fragmented


def test_xla_asks_for_its_temporaries_as_one_piece() -> None:
    found = mapped()
    assert found.allocator is None
    resident = 6 * MATRIX + ASKED * ROW
    assert found.temporary_bytes == pytest.approx(found.peak_bytes - resident)


def test_moments_are_in_order_and_the_worst_is_the_peak() -> None:
    found = mapped(depth=80)
    assert 1 < len(found.moments) <= 200
    assert all(a.share < b.share for a, b in pairwise(found.moments))
    assert max(one.live_bytes for one in found.moments) == found.peak_bytes
    for one in found.moments:
        assert sum(one.parts_bytes.values()) == pytest.approx(one.live_bytes)


def test_tensors_have_their_shape_at_the_batch_asked_and_layers_add_up() -> None:
    found = mapped()
    sizes = [one.held_bytes for one in found.tensors]
    assert sizes == sorted(sizes, reverse=True)
    shapes = {one.shape for one in found.tensors}
    assert shapes <= {(WIDTH, WIDTH), (ASKED, WIDTH)}
    assert (ASKED, WIDTH) in shapes
    assert found.held_count == len(found.tensors)  # fewer than 40
    assert sum(one.held_bytes for one in found.layers) == pytest.approx(found.peak_bytes)
    weight = next(one for one in found.tensors if one.part == "weights")
    assert (weight.first_share, weight.last_share) == (0.0, 1.0)
    assert weight.layer in {f"layer_{n}" for n in range(1, 7)}


def test_the_peak_says_where_in_the_step_it_is() -> None:
    found = mapped()
    assert found.peak_phase in ("forward", "backward")
    assert 0.0 < found.peak_share < 1.0
