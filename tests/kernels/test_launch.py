"""What a launch leaves in memory, and which windows are cumulative sums."""

from __future__ import annotations

import pytest

from tfdyno.kernels.graph import Graph, Node, TensorType
from tfdyno.kernels.launch import Launch, is_scan, results_of

F32 = TensorType((4,), "f32", 32)


def test_a_launch_leaves_the_results_of_its_roots() -> None:
    graph = Graph()
    graph.add("split", (), [F32, F32])
    graph.add("tanh", (0,), [F32])
    assert results_of(graph, Launch([0, 1], {}, 0, 0)) == [0, 1, 2]


def test_after_an_epilogue_it_leaves_what_is_written_instead() -> None:
    graph = Graph()
    graph.add("dot_general", (), [F32])
    graph.add("add", (0,), [F32])
    assert results_of(graph, Launch([0], {}, 0, 0, written=[1])) == [1]


@pytest.mark.parametrize(
    ("window", "stride", "scan"),
    [
        ((1, 512), (1, 1), True),  # as wide as its axis, one by one
        ((1, 3), (1, 1), False),  # pooling
        ((1, 512), (1, 512), False),  # one sum per row
        ((2, 512), (1, 1), False),  # also wide elsewhere
        ((1, 1), (1, 1), False),
    ],
)
def test_a_window_as_wide_as_its_axis_is_a_scan(
    window: tuple[int, ...], stride: tuple[int, ...], scan: bool
) -> None:
    node = Node("reduce_window", (), (), "", 1, 0, {"window": window, "stride": stride})
    assert is_scan(node, (37, 512)) is scan


def test_an_axis_of_length_one_is_no_scan() -> None:
    node = Node("reduce_window", (), (), "", 1, 0, {"window": (1, 3), "stride": (1, 1)})
    assert not is_scan(node, (1, 512))
