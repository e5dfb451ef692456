"""The flat graph: sizes, who makes what, what is needed and what depends on what."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.choose.workload import TensorSpec
from tfdyno.kernels.graph import Graph, TensorType, depends_on_roles, live_nodes, varying_nodes

F32 = TensorType((4, 8), "f32", 32)


@pytest.mark.parametrize(
    ("shape", "bits", "elements", "size_bytes"),
    [((4, 8), 32, 32, 128), ((), 32, 1, 4), ((3,), 4, 3, 2), ((0, 5), 32, 0, 0), ((7,), 8, 7, 7)],
)
def test_a_tensor_takes_whole_bytes(
    shape: tuple[int, ...], bits: int, elements: int, size_bytes: int
) -> None:
    made = TensorType(shape, "x", bits)
    assert (made.elements, made.bytes) == (elements, size_bytes)


def chain(*operations: str) -> Graph:
    """An argument and operations that each read the one before; the last is the output."""
    graph = Graph()
    (value,) = graph.add("argument", (), [F32])
    graph.arguments.append(value)
    for operation in operations:
        (value,) = graph.add(operation, (value,), [F32])
    graph.outputs = [value]
    return graph


def test_values_are_numbered_over_all_nodes() -> None:
    graph = Graph()
    assert graph.add("argument", (), [F32]) == (0,)
    assert graph.add("split", (0,), [F32, F32, F32]) == (1, 2, 3)
    assert graph.add("add", (1, 3), [F32]) == (4,)
    assert graph.producer(2).op == "split"
    assert graph.producer(4).operands == (1, 3)


def test_views_are_looked_through() -> None:
    graph = chain("tanh", "reshape", "transpose")
    assert graph.strip(3, frozenset({"reshape", "transpose"})) == 1
    assert graph.strip(3, frozenset({"transpose"})) == 2
    assert graph.strip(1, frozenset({"reshape"})) == 1


def test_what_no_output_needs_is_not_live() -> None:
    graph = chain("tanh", "exp")
    graph.add("log", (1,), [F32])
    assert live_nodes(graph) == [True, True, True, False]


def test_what_a_loop_feeds_back_is_live() -> None:
    graph = Graph()
    (start,) = graph.add("argument", (), [F32])
    (state,) = graph.add("loop_state", (start,), [F32])
    (inside,) = graph.add("tanh", (state,), [F32])
    (unused,) = graph.add("exp", (state,), [F32])
    graph.nodes[1].attributes["feedback"] = inside
    graph.outputs = [state]
    assert unused == 3
    assert live_nodes(graph) == [True, True, True, False]


def test_masks_made_of_nothing_do_not_vary() -> None:
    graph = chain("tanh")
    (iota,) = graph.add("iota", (), [F32])
    (mask,) = graph.add("compare", (iota, iota), [F32])
    (drawn,) = graph.add("rng", (), [F32])
    graph.add("select", (mask, drawn, 1), [F32])
    assert varying_nodes(graph) == [True, True, False, False, True, True]


def test_dependence_follows_the_role_of_an_argument() -> None:
    graph = Graph()
    for _ in range(2):
        graph.arguments += graph.add("argument", (), [F32])
    graph.add("tanh", (0,), [F32])
    graph.add("exp", (1,), [F32])
    graph.add("add", (2, 3), [F32])
    tensors = (
        TensorSpec(name="w", role="weight", shape=(4, 8), dtype="float32", bytes=128),
        TensorSpec(name="x", role="input", shape=(4, 8), dtype="float32", bytes=128),
    )
    found = depends_on_roles(graph, tensors, frozenset({"input"}))
    assert found == [False, True, False, True, True]


def test_dependence_goes_once_round_a_loop() -> None:
    graph = Graph()
    (start,) = graph.add("constant", (), [F32])
    (state,) = graph.add("loop_state", (start,), [F32])
    (next_,) = graph.add("add", (state, state), [F32])
    graph.nodes[1].attributes["feedback"] = next_
    graph.add("loop_result", (next_,), [F32])
    assert varying_nodes(graph) == [False, True, True, True]


@given(st.lists(st.sampled_from(["tanh", "exp", "reshape"]), max_size=8))
def test_every_link_of_a_chain_is_live_and_varies(operations: list[str]) -> None:
    graph = chain(*operations)
    everything = [True] * (len(operations) + 1)
    assert live_nodes(graph) == varying_nodes(graph) == everything
