"""Launches that share what they read become one, and never one that waits for itself."""

from __future__ import annotations

from typing import Any

from tfdyno.kernels.fusion.merging import merge_chains, merge_epilogues, merge_rows, merge_siblings
from tfdyno.kernels.graph import Graph, TensorType
from tfdyno.kernels.launch import Launch

ROWS, COLUMNS = 1024, 512
LARGE = TensorType((ROWS, COLUMNS), "f32", 32)
PER_ROW = TensorType((ROWS,), "f32", 32)
READ = (LARGE.bytes, LARGE.elements)
SMALL = (COLUMNS * 4, COLUMNS)


class Made:
    """A graph and its launches, one operation each; values are numbered as they are made."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.launches: list[Launch] = []

    def argument(self, kind: TensorType = LARGE) -> int:
        return self.graph.add("argument", (), [kind])[0]

    def launch(
        self, op: str, reads: dict[int, tuple[int, int]], *, depth: int, scope: int = 0,
        kind: TensorType = LARGE, **attributes: Any,
    ) -> int:  # fmt: skip
        (value,) = self.graph.add(op, tuple(reads), [kind], scope=scope, attributes=attributes)
        root = len(self.graph.nodes) - 1
        self.launches.append(Launch([root], dict(reads), depth, root, members=[root]))
        return value


def operations(made: Made, launches: list[Launch]) -> list[list[str]]:
    return [[made.graph.nodes[root].op for root in one.roots] for one in launches]


def test_two_readers_of_one_tensor_share_a_launch() -> None:
    made = Made()
    x = made.argument()
    made.launch("tanh", {x: READ}, depth=0)
    made.launch("exponential", {x: READ, made.argument(): SMALL}, depth=0)
    (one,) = merge_siblings(made.graph, made.launches)
    assert operations(made, [one]) == [["tanh", "exponential"]]
    assert one.reads[x] == READ  # once
    assert one.position == made.launches[1].position


def test_what_waits_behind_a_barrier_joins_no_kernel_that_is_before_it() -> None:
    for after in ((), (7,)):
        made = Made()
        x = made.argument()
        made.launch("tanh", {made.launch("exponential", {x: READ}, depth=0): READ}, depth=1)
        made.launches[1].after = after
        assert len(merge_chains(made.graph, made.launches)) == (2 if after else 1)


def test_readers_at_other_depths_or_in_other_regions_stay_apart() -> None:
    made = Made()
    x = made.argument()
    made.launch("tanh", {x: READ}, depth=0)
    made.launch("exponential", {x: READ}, depth=1)
    made.launch("log", {x: READ}, depth=0, scope=1)
    assert len(merge_siblings(made.graph, made.launches)) == 3


def test_a_small_tensor_in_common_is_no_reason_to_share_a_launch() -> None:
    made = Made()
    scale = made.argument()
    made.launch("tanh", {scale: SMALL}, depth=0)
    made.launch("exponential", {scale: SMALL}, depth=0)
    assert len(merge_siblings(made.graph, made.launches)) == 2


def test_a_library_call_has_a_launch_of_its_own() -> None:
    made = Made()
    x = made.argument()
    made.launch("dot_general", {x: READ}, depth=0)
    made.launch("tanh", {x: READ}, depth=0)
    assert len(merge_siblings(made.graph, made.launches)) == 2


def softmax(dimension: int) -> Made:
    """Maxima along a dimension of x, then a launch that reads x again with them."""
    made = Made()
    x = made.argument()
    peak = made.launch("reduce", {x: READ}, depth=0, kind=PER_ROW, dimensions=(dimension,))
    made.graph.nodes[-1].operands = (x,)
    made.launch("exponential", {x: READ, peak: (PER_ROW.bytes, ROWS)}, depth=1)
    return made


def test_statistics_of_rows_are_computed_by_their_reader() -> None:
    made = softmax(dimension=1)
    (one,) = merge_rows(made.graph, made.launches)
    assert operations(made, [one]) == [["exponential", "reduce"]]
    assert list(one.reads) == [0]  # the statistics stay inside


def test_statistics_over_the_batch_are_not() -> None:
    made = softmax(dimension=0)
    assert len(merge_rows(made.graph, made.launches)) == 2


def test_statistics_that_another_launch_needs_first_are_not() -> None:
    made = softmax(dimension=1)
    made.launch("log", {1: (PER_ROW.bytes, ROWS)}, depth=1, kind=PER_ROW)
    assert len(merge_rows(made.graph, made.launches)) == 3


def layer(last: str) -> Made:
    """A product, and an operation that reads its result and a bias."""
    made = Made()
    product = made.launch("dot_general", {made.argument(): READ}, depth=0)
    made.launch(last, {product: READ, made.argument(): SMALL}, depth=1)
    return made


def test_a_bias_is_added_by_the_library_call() -> None:
    made = layer("add")
    (one,) = merge_epilogues(made.graph, made.launches)
    assert operations(made, [one]) == [["dot_general"]]
    assert [made.graph.nodes[index].op for index in one.written] == ["add"]
    assert one.reads == {0: READ, 2: SMALL}  # input and bias


def test_a_function_that_no_library_has_is_a_launch_of_its_own() -> None:
    made = layer("tanh")
    assert len(merge_epilogues(made.graph, made.launches)) == 2


def test_a_result_with_another_reader_is_written_bare() -> None:
    made = layer("add")
    made.launch("tanh", {1: READ}, depth=1)
    assert len(merge_epilogues(made.graph, made.launches)) == 3


def test_a_reader_by_element_is_computed_by_its_source() -> None:
    made = Made()
    x = made.argument()
    y = made.launch("tanh", {x: READ}, depth=0)
    made.launch("exponential", {y: READ}, depth=1)
    (one,) = merge_chains(made.graph, made.launches)
    assert operations(made, [one]) == [["tanh", "exponential"]]
    assert one.reads == {x: READ}


def test_a_reader_that_waits_for_a_third_launch_is_not() -> None:
    made = Made()
    x = made.argument()
    y = made.launch("tanh", {x: READ}, depth=0)
    z = made.launch("sort", {x: READ}, depth=0)
    made.launch("add", {y: READ, z: READ}, depth=1)
    assert len(merge_chains(made.graph, made.launches)) == 3


def test_a_reader_of_another_size_is_not() -> None:
    made = Made()
    y = made.launch("tanh", {made.argument(): READ}, depth=0)
    made.launch("slice", {y: READ}, depth=1, kind=PER_ROW)
    assert len(merge_chains(made.graph, made.launches)) == 2
