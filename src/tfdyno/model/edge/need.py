"""What a .tflite graph needs of any device: memory by the lives of its values, and arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.deploy.edge import EdgeNeed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.deploy.litert_graph import LitertGraph, LitertOperator, LitertSubgraph

ALIGNMENT_BYTES = 16
"""The alignment of every value in memory, as LiteRT for Microcontrollers places them."""
_INTEGERS = frozenset({"int8", "uint8", "int16", "int4"})


def need_of(graph: LitertGraph, layers: tuple[str, ...] = (), *, arena_bytes: int = 0) -> EdgeNeed:
    """Read what a file asks for.

    Args:
        graph: The file; open axes count as 1, so that all is for one sample.
        layers: Of each operator of the main subgraph, the layer it is of; empty: not known.
        arena_bytes: What LiteRT's interpreter lays out; 0: not known.
    """
    live_bytes, place = peak(graph, 0)
    main = graph.main
    at = main.operators[place].kind if main.operators else ""
    layer = layers[place] if place < len(layers) else ""
    weights = [t for part in graph.subgraphs for t in part.tensors if t.constant]
    runs = list(_runs(graph, 0))
    floats = sum(n * op.arithmetic for op, part, n in runs if not is_integer(op, part))
    integers = sum(n * op.arithmetic for op, part, n in runs if is_integer(op, part))
    operators = [op for part in graph.subgraphs for op in part.operators]
    return EdgeNeed(
        file_bytes=graph.size_bytes,
        weight_bytes=sum(tensor.size_bytes for tensor in weights),
        live_bytes=live_bytes,
        arena_bytes=arena_bytes,
        peak_operator=f"{at} of {layer}" if layer else at,
        float_arithmetic=floats,
        integer_arithmetic=integers,
        moved_bytes=sum(n * _moved(op, part) for op, part, n in runs),
        port_bytes=sum(graph.tensor(one).size_bytes for one in (*graph.inputs, *graph.outputs)),
        operators=sum(n for _, _, n in runs),
        table_operators=len(operators),
        tensors=sum(len(part.tensors) for part in graph.subgraphs),
        kinds=tuple(sorted({op.kind for op in operators if not op.custom})),
        custom=tuple(sorted({op.kind for op in operators if op.custom})),
        open_batch=all(0 in graph.tensor(port).open_axes for port in graph.inputs),
        loops_unknown=any(op.calls and not op.repeats_known for op in operators),
    )


def peak(graph: LitertGraph, index: int) -> tuple[int, int]:
    """Return most bytes of values alive at once, and the place of the operator where that is.

    A value lives from the operator that makes it to the last one that takes it; inputs live from
    the start, outputs to the end, variables always; weights stay in the file. What an operator
    calls is alive beside what waits for it. LiteRT's own plan may need more, because it may not
    find places without gaps, and its kernels may need room of their own.
    """
    subgraph = graph.subgraphs[index]
    spans = _spans(subgraph)
    found = (sum(map(_rounded, (subgraph.tensors[i].size_bytes for i in subgraph.inputs))), 0)
    for place, operator in enumerate(subgraph.operators):
        alive = sum(
            _rounded(subgraph.tensors[i].size_bytes)
            for i, (first, last) in spans.items()
            if first <= place <= last
        )
        alive += max((peak(graph, called)[0] for called in operator.calls), default=0)
        found = max(found, (alive, place), key=lambda one: one[0])
    return found


def _spans(subgraph: LitertSubgraph) -> dict[int, tuple[int, int]]:
    """Return first and last operator in which each value that is not in the file must be there."""
    end = len(subgraph.operators)
    spans: dict[int, tuple[int, int]] = {}
    for i in subgraph.inputs:
        spans[i] = (0, 0)
    for place, operator in enumerate(subgraph.operators):
        for i in (*operator.inputs, *operator.outputs):
            if i >= 0 and not subgraph.tensors[i].constant:
                spans[i] = (spans.get(i, (place, place))[0], place)
    for i, tensor in enumerate(subgraph.tensors):
        if tensor.variable and i in spans:
            spans[i] = (0, end)
    for i in subgraph.outputs:
        if not subgraph.tensors[i].constant:
            spans[i] = (spans.get(i, (0, 0))[0], end)
    return spans


def _rounded(size_bytes: int) -> int:
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def _runs(
    graph: LitertGraph, index: int, times: int = 1
) -> Iterator[tuple[LitertOperator, LitertSubgraph, int]]:
    """Give each operator with how often it runs, those of loops and branches too."""
    for operator in graph.subgraphs[index].operators:
        yield operator, graph.subgraphs[index], times
        for called in operator.calls:
            yield from _runs(graph, called, times * operator.repeats)


def is_integer(operator: LitertOperator, subgraph: LitertSubgraph) -> bool:
    """Return whether it computes in integers of 4, 8 or 16 bits: its result has that type."""
    return any(subgraph.tensors[i].dtype in _INTEGERS for i in operator.outputs)


def _moved(operator: LitertOperator, subgraph: LitertSubgraph) -> int:
    if operator.calls or operator.kind == "RESHAPE":
        return 0
    places = [i for i in (*operator.inputs, *operator.outputs) if i >= 0]
    if operator.kind in {"GATHER", "EMBEDDING_LOOKUP"}:  # of the table only what comes out
        return 2 * sum(subgraph.tensors[i].size_bytes for i in operator.outputs)
    return sum(subgraph.tensors[i].size_bytes for i in places)
