from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax
from jax import numpy as jnp
from tests.runtime.lowered import Argument, of_kind, program

from tfdyno.core.base.errors import ToolError
from tfdyno.kernels.fusion.rule import in_order
from tfdyno.kernels.graph import Graph, TensorType
from tfdyno.kernels.launch import Launch

if TYPE_CHECKING:
    from tfdyno.core.choose.program import Program

ROWS, COLUMNS = 1024, 512
BYTES = 37 * ROWS * COLUMNS * 4
X: Argument = ("input", (37, ROWS, COLUMNS))


def moved(made: Program) -> list[tuple[Any, ...]]:
    return [(k.kind, k.read_bytes.at(37), k.write_bytes.at(37)) for k in made.kernels]


def test_a_chain_of_elementwise_operations_is_one_kernel() -> None:
    made = program(lambda x: jnp.tanh(x * 2 + 1) - x, X, mode="infer")
    assert moved(made) == [("loop", pytest.approx(BYTES), pytest.approx(BYTES))]
    assert made.kernels[0].flops.at(37) == pytest.approx(4 * BYTES / 4)  # *, +, tanh, -


def test_bytes_that_grow_with_the_batch_are_told_apart() -> None:
    made = program(lambda x, w: x * w, X, ("weight", (ROWS, COLUMNS)), mode="infer")
    (kernel,) = made.kernels
    assert kernel.read_bytes.fixed == ROWS * COLUMNS * 4
    assert kernel.read_bytes.per_sample == pytest.approx(ROWS * COLUMNS * 4)
    assert kernel.write_bytes.fixed == 0


def test_without_a_marker_everything_is_fixed() -> None:
    made = program(lambda x: x * 2, X, mode="infer", marker=0)
    assert made.kernels[0].read_bytes.per_sample == 0
    assert made.kernels[0].read_bytes.fixed == BYTES


def test_statistics_of_one_tensor_share_one_launch() -> None:
    made = program(lambda x: (jnp.sum(x, (0, 1)), jnp.sum(x * x, (0, 1))), X, mode="infer")
    ((kind, read, _),) = moved(made)
    assert (kind, read) == ("reduce", pytest.approx(BYTES))


def test_a_normalisation_over_the_batch_reads_its_input_twice() -> None:
    def norm(x: jax.Array) -> jax.Array:
        return (x - jnp.mean(x, (0, 1), keepdims=True)) * 2

    made = program(norm, X, mode="infer")
    assert [kind for kind, *_ in moved(made)] == ["reduce", "loop"]
    assert sum(read for _, read, _ in moved(made)) == pytest.approx(2 * BYTES, rel=0.01)


def test_momentum_and_weight_are_updated_in_one_launch() -> None:
    shape = (1024, 1024)

    def update(w: jax.Array, m: jax.Array, g: jax.Array) -> jax.Array:
        m = 0.9 * m - 0.1 * g
        return w + m, m

    made = program(update, ("weight", shape), ("optimizer", shape), ("input", shape))
    size = 1024 * 1024 * 4
    assert moved(made) == [("loop", 3 * size, 2 * size)]
    assert made.kernels[0].phase == "update"
    assert made.kernels[0].layer == "layer_0"


def test_what_depends_on_no_argument_costs_nothing() -> None:
    def masked(x: jax.Array) -> jax.Array:
        rows = jnp.cumsum(jnp.ones((COLUMNS, COLUMNS)), 0)
        mask = rows >= jnp.cumsum(jnp.ones((COLUMNS, COLUMNS)), 1)
        return jnp.where(mask, x, 0.0)

    made = program(masked, ("input", (37, COLUMNS, COLUMNS)), mode="infer")
    assert [kind for kind, *_ in moved(made)] == ["loop"]
    assert made.kernels[0].read_bytes.fixed == 0


def test_dead_code_costs_nothing() -> None:
    def step(x: jax.Array) -> jax.Array:
        jnp.sum(x @ x.T)
        return x + 1

    made = program(step, ("input", (37, 64)), mode="infer")
    assert [kernel.kind for kernel in made.kernels] == ["loop"]


def test_a_cumulative_sum_is_a_scan_and_not_pooling() -> None:
    def step(x: jax.Array) -> jax.Array:
        ones = (1,) * (x.ndim - 1)
        window, pad = (*ones, COLUMNS), ((0, 0),) * (x.ndim - 1) + ((COLUMNS - 1, 0),)
        return lax.reduce_window(x, 0.0, lax.add, window, (1,) * x.ndim, pad)

    made = program(step, X, mode="infer")
    assert moved(made) == [("scan", pytest.approx(BYTES), pytest.approx(BYTES))]


def test_pooling_knows_its_window_and_its_gradient_has_two_halves() -> None:
    def pool(x: jax.Array) -> jax.Array:
        window, stride = (1, 3, 3, 1), (1, 2, 2, 1)
        return jnp.sum(lax.reduce_window(x, -jnp.inf, lax.max, window, stride, "SAME") ** 2)

    made = program(jax.value_and_grad(pool), ("input", (37, 64, 64, 16)))
    windows = of_kind(made, "window")
    assert [kernel.dims["window"] for kernel in windows] == [(1, 3, 3, 1)] * 2
    assert [kernel.dims["stride"] for kernel in windows] == [(1, 2, 2, 1)] * 2
    pooled, padded = 37 * 32 * 32 * 16, 37 * 65 * 65 * 16
    forward, finding = sorted(windows, key=lambda kernel: kernel.write_bytes.at(37))
    assert forward.write_bytes.at(37) == pytest.approx(4 * pooled)
    assert finding.write_bytes.at(37) == pytest.approx((4 + 4 * 4) * pooled)  # value, position
    (adding,) = of_kind(made, "scatter")
    assert adding.write_bytes.at(37) == pytest.approx(4 * padded + 2 * 4 * pooled)


def test_an_embedding_reads_only_the_rows_it_looks_up() -> None:
    made = program(
        lambda table, tokens: table[tokens] * 1.0,
        ("weight", (30_000, 768)),
        ("input", (37, 128), "int32"),
        mode="infer",
    )
    (gather,) = of_kind(made, "gather")
    assert gather.read_bytes.at(37) == pytest.approx(37 * 128 * (768 * 4 + 4), rel=0.01)


def test_the_gradient_of_an_embedding_is_added_row_by_row() -> None:
    def loss(table: jax.Array, tokens: jax.Array) -> jax.Array:
        return jnp.sum(table[tokens] ** 2)

    made = program(
        jax.grad(loss), ("weight", (30_000, 768)), ("input", (37, 128), "int32")
    )  # fmt: skip
    (scatter,) = of_kind(made, "scatter")
    table, rows = 30_000 * 768 * 4, 37 * 128 * 768 * 4
    assert scatter.write_bytes.at(37) == pytest.approx(table + 2 * rows)


def test_the_heaviest_branch_is_the_one_that_counts() -> None:
    def step(ok: jax.Array, x: jax.Array, w: jax.Array) -> jax.Array:
        return lax.cond(ok, lambda: jnp.tanh(x @ w) @ w, lambda: x)

    made = program(step, ("state", (), "bool"), ("input", (37, 64)), ("weight", (64, 64)))
    assert len(of_kind(made, "gemm")) == 2


@pytest.mark.parametrize("rectified", [True, False])
def test_bias_and_rectifier_of_a_library_call_cost_no_launch(rectified: bool) -> None:
    def layer(x: jax.Array, w: jax.Array, b: jax.Array) -> jax.Array:
        y = x @ w + b
        return jnp.maximum(y, 0.0) if rectified else y

    made = program(
        layer, ("input", (37, 64, 512)), ("weight", (512, 512)), ("weight", (512,)), mode="infer"
    )
    assert [kernel.kind for kernel in made.kernels] == ["gemm"]
    assert made.kernels[0].write_bytes.at(37) == pytest.approx(37 * 64 * 512 * 4)
    assert made.buffers.temporary_bytes.at(37) == 0


def test_other_functions_of_a_librarys_result_are_kernels_of_their_own() -> None:
    made = program(
        lambda x, w: jnp.tanh(x @ w), ("input", (37, 64, 512)), ("weight", (512, 512)), mode="infer"
    )
    assert [kernel.kind for kernel in made.kernels] == ["gemm", "loop"]


def test_a_softmax_is_one_launch() -> None:
    made = program(lambda x: jax.nn.softmax(x, -1), X, mode="infer")
    (kernel,) = made.kernels
    assert kernel.kind == "reduce"
    assert kernel.read_bytes.at(37) == pytest.approx(BYTES)


def test_random_bits_that_the_gradient_needs_are_kept() -> None:
    def loss(x: jax.Array, seed: jax.Array, w: jax.Array) -> jax.Array:
        keep = jax.random.bernoulli(jax.random.wrap_key_data(seed), 0.9, x.shape)
        return jnp.sum((jnp.where(keep, x @ w, 0.0) @ w) ** 2)

    shape = (37, ROWS, COLUMNS)
    seed, weight = ("state", (2,), "uint32"), ("weight", (COLUMNS, COLUMNS))
    made = program(jax.grad(loss, argnums=2), ("input", shape), seed, weight)
    masks = [k for k in made.kernels if k.write_bytes.at(37) == pytest.approx(BYTES / 4, rel=0.01)]
    assert [kernel.phase for kernel in masks] == ["forward"]


def launches(*wanted: tuple[int, list[int]]) -> tuple[Graph, list[Launch]]:
    """Launches that make value 0, 1, …: each a position and the values it reads."""
    graph = Graph()
    made = []
    for index, (position, reads) in enumerate(wanted):
        graph.add("tanh", (), [TensorType((4,), "f32", 32)])
        made.append(Launch([index], dict.fromkeys(reads, (16, 4)), 0, position))
    return graph, made


def order(graph: Graph, made: list[Launch]) -> list[int]:
    return [launch.roots[0] for launch in in_order(graph, made)]


def test_without_reads_the_position_decides() -> None:
    assert order(*launches((2, []), (0, []), (1, []))) == [1, 2, 0]


def test_a_reader_waits_for_its_source_whatever_its_position() -> None:
    assert order(*launches((0, [2]), (1, []), (9, []))) == [1, 2, 0]


def test_what_a_launch_makes_itself_keeps_nobody_waiting() -> None:
    assert order(*launches((0, [0, 1]), (1, []))) == [1, 0]


def test_a_value_of_no_launch_is_there_already() -> None:
    assert order(*launches((1, [7]), (0, []))) == [1, 0]


def test_launches_that_wait_for_each_other_are_a_fault() -> None:
    with pytest.raises(ToolError, match="the kernels of this program wait for each other"):
        order(*launches((0, [1]), (1, [0])))


@given(st.data())
def test_every_launch_runs_once_and_after_its_sources(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 12))
    wanted = [
        (data.draw(st.integers(0, 20)), data.draw(st.lists(st.integers(0, index), max_size=3)))
        for index in range(count)  # reads only of itself and earlier ones: no knot
    ]
    found = order(*launches(*wanted))
    assert sorted(found) == list(range(count))
    place = {launch: index for index, launch in enumerate(found)}
    for reader, (_, reads) in enumerate(wanted):
        assert all(place[source] <= place[reader] for source in reads)
