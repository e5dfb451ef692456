"""Kernels that share their reads become one launch: siblings, then readers with their source.

Every merge keeps the depths of launches rising from source to reader, so none can wait for itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.kernels.launch import (
    CHEAP,
    EPILOGUE,
    LIBRARY,
    SMALL_BYTES,
    WHOLE,
    Launch,
    Reads,
    results_of,
)
from tfdyno.kernels.layers import phase_of

if TYPE_CHECKING:
    from tfdyno.kernels.graph import Graph, Node


ROW_LIMIT = 8192
"""Elements of the longest row that one kernel of today's XLA normalises."""
SCALAR_BYTES = 8
SHARED = 3
"""Today's XLA adds up what it computes in the same kernel only if so many others read it."""


def merge_siblings(graph: Graph, launches: list[Launch]) -> list[Launch]:
    """Give kernels of one depth, whose large reads another one shares, one launch."""
    merged: list[Launch] = []
    least = _least(graph)
    by_read: dict[tuple[int, int, int], list[Launch]] = {}
    order = sorted(launches, key=lambda launch: -sum(_large(launch.reads, least).values()))
    for launch in order:
        nodes = [graph.nodes[index] for index in launch.roots]
        large = _large(launch.reads, least)
        if not large or nodes[0].op in WHOLE - {"reduce"}:
            merged.append(launch)
            continue
        keys = [(launch.depth, nodes[0].scope, value) for value in large]
        host = next(
            (host for host in by_read.get(keys[0], []) if large.keys() <= host.reads.keys()), None
        )
        if host is None:
            host = Launch([], {}, launch.depth, launch.position)
            merged.append(host)
            for key in keys:
                by_read.setdefault(key, []).append(host)
        host.roots += launch.roots
        host.position = max(host.position, launch.position)
        host.reads = {**launch.reads, **host.reads}
        host.after += launch.after
    return merged


def merge_rows(graph: Graph, launches: list[Launch]) -> list[Launch]:
    """Let a kernel compute the statistics of the rows that it reads: softmax in one launch."""
    maker = {value: launch for launch in launches for value in results_of(graph, launch)}
    readers = _readers(launches)
    gone: set[int] = set()
    for launch in launches:
        for value in list(launch.reads):
            rows = maker.get(value)
            if rows is None or rows is launch or not _reduces_rows(graph, rows, launch):
                continue
            if graph.lowering != "before" and not _is_row_kernel(graph, rows, launch):
                continue
            own = set(results_of(graph, rows))
            others = (other for made in own for other in readers.get(made, ()))
            if any(o is not launch and o is not rows and o.depth <= launch.depth for o in others):
                continue  # it would wait for a launch that needs its statistics
            launch.reads = {v: r for v, r in (rows.reads | launch.reads).items() if v not in own}
            launch.roots = launch.roots + rows.roots
            launch.after += rows.after
            launch.rows = graph.lowering != "before"
            maker.update(dict.fromkeys(own, launch))
            gone.add(id(rows))
            for source in rows.reads:
                readers[source].append(launch)
    return [launch for launch in launches if id(launch) not in gone]


def _reduces_rows(graph: Graph, rows: Launch, launch: Launch) -> bool:
    """Return whether ``rows`` reduces along the last axis what ``launch`` reads again."""
    nodes = [graph.nodes[root] for root in rows.roots]
    if launch.depth != rows.depth + 1 or graph.nodes[launch.roots[0]].op in WHOLE - {"reduce"}:
        return False
    large = _large(rows.reads).keys()
    return (
        bool(large)
        and large <= launch.reads.keys()
        and all(
            node.op == "reduce"
            and node.scope == graph.nodes[launch.roots[0]].scope
            and node.attributes["dimensions"]
            == (len(graph.values[node.operands[0]].type.shape) - 1,)
            for node in nodes
        )
    )


def _is_row_kernel(graph: Graph, rows: Launch, launch: Launch) -> bool:
    """Return whether today's XLA makes one kernel of them: a short row without a mask in memory.

    Under TensorFlow the statistics of a forward normalisation, other than softmax, are kernels of
    their own: it hands over the mean as a product of its own.
    """
    node = graph.nodes[rows.roots[0]]
    masked = any(graph.values[value].type.dtype == "pred" for value in _large(launch.reads))
    if masked or graph.values[node.operands[0]].type.shape[-1] > ROW_LIMIT:
        return False
    if graph.lowering == "jax" or phase_of(node.location) == "backward":
        return True
    return any(_computes(graph, each, "exponential") for each in (rows, launch))


def _computes(graph: Graph, launch: Launch, op: str) -> bool:
    """Return whether an operation is among those that a launch computes."""
    queue, seen = list(launch.roots), set(launch.roots)
    while queue:
        node = graph.nodes[queue.pop()]
        if node.op == op:
            return True
        inner = {graph.values[v].producer for v in node.operands if v not in launch.reads}
        queue += inner - seen
        seen |= inner
    return False


def merge_epilogues(graph: Graph, launches: list[Launch]) -> list[Launch]:
    """Let a library call add the bias and apply the rectifier, if nobody reads its bare result."""
    maker = {value: launch for launch in launches for value in results_of(graph, launch)}
    readers = _readers(launches)
    gone: set[int] = set()
    for launch in launches:
        large = list(_large(launch.reads))
        host = maker.get(large[0]) if len(large) == 1 and len(readers[large[0]]) == 1 else None
        if host is None or not _is_epilogue(graph, host, launch) or _waits_more(host, launch):
            continue
        others = (maker[value] for value in launch.reads if value in maker)
        if any(other is not host and other.depth >= host.depth for other in others):
            continue
        host.reads = host.reads | {v: r for v, r in launch.reads.items() if v != large[0]}
        host.written = launch.roots
        gone.add(id(launch))
    return [launch for launch in launches if id(launch) not in gone]


def _is_epilogue(graph: Graph, host: Launch, launch: Launch) -> bool:
    library, last = graph.nodes[host.roots[0]], graph.nodes[launch.roots[0]]
    if library.op not in LIBRARY or len(launch.roots) > 1 or library.scope != last.scope:
        return False
    same = graph.values[library.results[0]].elements == graph.values[last.results[0]].elements
    return same and all(graph.nodes[index].op in EPILOGUE | CHEAP for index in launch.members)


def merge_chains(graph: Graph, launches: list[Launch]) -> list[Launch]:
    """Let a kernel also compute what reads its result by element, if all else is at hand."""
    maker = {value: launch for launch in launches for value in results_of(graph, launch)}
    readers = _readers(launches) if graph.lowering != "before" else {}
    gone: set[int] = set()
    for launch in reversed(launches) if readers else launches:
        reduces = any(graph.nodes[root].op == "reduce" for root in launch.roots)
        hosts = (
            (value, maker.get(value))
            for value in _large(launch.reads, _least(graph))
            if not readers or not reduces or len(readers[value]) >= SHARED
        )
        host = next((h for v, h in hosts if h and _follows(graph, maker, h, launch, v)), None)
        if host is None:
            continue
        own = set(results_of(graph, host))
        host.reads = {v: r for v, r in (launch.reads | host.reads).items() if v not in own}
        host.roots += launch.roots
        host.position = max(host.position, launch.position)
        maker.update(dict.fromkeys(results_of(graph, launch), host))
        gone.add(id(launch))
    return [launch for launch in launches if id(launch) not in gone]


def _follows(
    graph: Graph, maker: dict[int, Launch], host: Launch, launch: Launch, value: int
) -> bool:
    """Return whether a launch can be computed inside the host of ``value``, which it reads."""
    first, second = graph.nodes[host.roots[0]], graph.nodes[launch.roots[0]]
    if host is launch or first.op in WHOLE or second.op in WHOLE - {"reduce"}:
        return False
    if _waits_more(host, launch):
        return False
    if graph.lowering != "before" and (host.rows or launch.rows or _reads_random(graph, host)):
        return False
    others = (maker[other] for other in launch.reads if other in maker)
    if first.scope != second.scope or any(
        other is not host and other.depth >= host.depth for other in others
    ):
        return False
    same = graph.values[value].elements
    return all(_elements(graph, graph.nodes[root]) == same for root in launch.roots)


def _waits_more(host: Launch, launch: Launch) -> bool:
    """Return whether a launch is behind a barrier that the kernel of its source is not behind."""
    return not set(launch.after) <= set(host.after)


def _reads_random(graph: Graph, launch: Launch) -> bool:
    """Return whether a kernel makes something of random bits, read in an order of its own."""
    return any(graph.producer(value).op == "rng_bit_generator" for value in launch.reads)


def _elements(graph: Graph, node: Node) -> int:
    """Return how many elements a fused node runs over: of a reduction, those it reads."""
    value = node.operands[0] if node.op == "reduce" else node.results[0]
    return graph.values[value].elements


def _readers(launches: list[Launch]) -> dict[int, list[Launch]]:
    readers: dict[int, list[Launch]] = {}
    for launch in launches:
        for value in launch.reads:
            readers.setdefault(value, []).append(launch)
    return readers


def _large(reads: Reads, least: int = SMALL_BYTES) -> dict[int, int]:
    return {value: read[0] for value, read in reads.items() if read[0] > least}


def _least(graph: Graph) -> int:
    """Return the bytes of a read that another kernel is joined for: XLA joins small ones, too."""
    return SMALL_BYTES if graph.lowering == "before" else SCALAR_BYTES
