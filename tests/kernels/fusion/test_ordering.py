"""Launches run in the program's order, but none before what it reads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.base.errors import ToolError
from tfdyno.kernels.fusion.ordering import in_order
from tfdyno.kernels.graph import Graph, TensorType
from tfdyno.kernels.launch import Launch


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
