"""Which values a GPU program keeps in memory, and which kernels that makes: a small fusion rule.

The rule and its constants were chosen by comparing bytes with XLA's compiled programs; against them
the bytes of train steps are right to 15 %, those of today's TensorFlow to 9 %.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import ToolError
from tfdyno.kernels.fusion.merging import (
    ROW_LIMIT,
    merge_chains,
    merge_epilogues,
    merge_rows,
    merge_siblings,
)
from tfdyno.kernels.graph import SOURCES, Graph, Node, live_nodes, varying_nodes
from tfdyno.kernels.launch import (
    CHEAP,
    DEAR,
    EXPENSIVE,
    KERNEL_VIEWS,
    LAZY,
    LONG,
    LONG_CHAIN,
    MANY_READS,
    PARTIAL,
    READS_LIMIT,
    SMALL_BYTES,
    VIEWS,
    WHOLE,
    Fusion,
    Launch,
    Reads,
    results_of,
)
from tfdyno.kernels.layers import RECOMPUTED_BY_JAX, phase_of

if TYPE_CHECKING:
    from collections.abc import Iterator

SPREAD = LAZY | {"convert"}


def fuse(graph: Graph) -> Fusion:
    """Apply the rule to a graph; launches come in program order of their last root."""
    if graph.lowering == "before":
        rule = _Rule(graph)
        launches = _launches(graph, rule)
    else:
        counts, found = _count_kernels(graph), frozenset(_softmaxes(graph))
        rule = _Rule(graph, found, counts)
        launches = _launches(graph, rule)
        rule = _Rule(graph, found | _computed_again(graph, rule, launches), counts)
        launches = _launches(graph, rule)
    _assign_members(graph, rule, launches)
    launches = merge_epilogues(graph, launches)
    return Fusion(launches, rule.varying, rule.kept)


def fuse_for_memory(graph: Graph) -> Fusion:
    """Return what a step holds where XLA keeps what is dear to compute again (``BufferPlan.kept``).

    For memory alone, of a graph that was read as ``before``: rates are those of ``fuse``.
    """
    rule = _Rule(graph, long=DEAR)
    launches = _launches(graph, rule)
    _assign_members(graph, rule, launches)
    return Fusion(merge_epilogues(graph, launches), rule.varying, rule.kept)


def _launches(graph: Graph, rule: _Rule) -> list[Launch]:
    """Return what the rule keeps, merged."""
    for index in range(len(graph.nodes)):
        rule.visit(index)
    launches = in_order(graph, merge_siblings(graph, rule.launches))
    return in_order(graph, merge_chains(graph, merge_rows(graph, launches)))


def _count_kernels(graph: Graph) -> list[int]:
    """Count how many kept results need each node; those behind kept ones count not.

    A gradient that two sums and a product read has three; one that two functions of the same
    kernel read has one.
    """
    rule = _Rule(graph, counts=[1] * len(graph.nodes))
    for index in range(len(graph.nodes)):
        rule.visit(index)
    found: list[set[int]] = [set() for _ in graph.nodes]
    for index, node in reversed(list(enumerate(graph.nodes))):
        if not rule.varying[index] or node.op in SOURCES:
            continue
        kept = rule.kept[index] or rule.saves(index, rule.reads[index], len(found[index]))
        around = {index} if kept else found[index]
        for producer in {graph.values[value].producer for value in node.operands}:
            found[producer] |= around
    return [len(each) for each in found]


def _softmaxes(graph: Graph) -> Iterator[int]:
    """Find quotients of an exponential and its sum along short rows: the result of one kernel."""
    for index, node in enumerate(graph.nodes):
        if node.op != "divide":
            continue
        whole, total = (graph.strip(value, SPREAD) for value in node.operands)
        row = graph.producer(total)
        if row.op != "reduce" or graph.producer(whole).op != "exponential":
            continue
        held = graph.values[node.results[0]]
        summed = graph.strip(row.operands[0], SPREAD)
        if summed == whole and held.bytes > SMALL_BYTES and held.type.shape[-1] <= ROW_LIMIT:
            yield index


def _computed_again(graph: Graph, rule: _Rule, launches: list[Launch]) -> frozenset[int]:
    """Find large results of expensive functions that two launches or more would compute."""
    hosts: list[set[int]] = [set() for _ in graph.nodes]
    for number, launch in enumerate(launches):
        for root in launch.roots:
            hosts[root].add(number)
    found = set()
    for index in reversed(range(len(graph.nodes))):
        node = graph.nodes[index]
        if not rule.varying[index] or node.op in SOURCES:
            continue
        around = hosts[index]
        size = sum(graph.values[value].bytes for value in node.results)
        dtype = graph.values[node.results[0]].type.dtype
        expensive = dtype in EXPENSIVE.get(node.op, ())
        if expensive and len(around) > 1 and size > SMALL_BYTES:
            found.add(index)
            around = {-1 - index}
        for producer in {graph.values[value].producer for value in node.operands}:
            if not rule.kept[producer]:
                hosts[producer] |= around
    return frozenset(found)


class _Barrier:
    """What JAX computes again waits for the gradient that asks for it: an optimization barrier.

    So XLA makes no kernel of it and of the forward pass, which reads the same, and does not run it
    early. In the graph, which sees through barriers, its kernels are deeper than all before it.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.values: tuple[int, ...] = ()
        """The results of the backward pass between the last two barriers."""
        self._deepest = 0
        self._made: list[int] = []
        self._is_behind = False

    def reach(self, node: Node) -> None:
        """Go on to the next node of the program."""
        if RECOMPUTED_BY_JAX in node.location:
            if not self._is_behind:
                self.depth, self.values, self._made = self._deepest, tuple(self._made), []
            self._is_behind = True
        elif phase_of(node.location) == "backward":
            self._is_behind = False

    def add(self, node: Node, depth: int) -> None:
        """Add a node that is kept."""
        self._deepest = max(self._deepest, depth)
        if phase_of(node.location) == "backward":
            self._made += node.results


class _Rule:
    """Visits nodes; ``kept`` are whatever the rule says, ``counts`` says how many need each."""

    def __init__(
        self,
        graph: Graph,
        kept: frozenset[int] = frozenset(),
        counts: list[int] | None = None,
        long: frozenset[str] = LONG,
    ) -> None:
        self.graph, self.today, self.long = graph, counts is not None, long
        live, varying = live_nodes(graph), varying_nodes(graph)
        self.varying = [a and b for a, b in zip(live, varying, strict=True)]
        self.kept = [False] * len(graph.nodes)
        self.reads: list[Reads] = [{} for _ in graph.nodes]
        self.depth = [0] * len(graph.nodes)
        self.chain = [0] * len(graph.nodes)
        self.consumers = counts or self._count_consumers()
        self.forced = self._forced() | kept
        self.saved = self._saved()
        self.summed = {
            producer
            for node in graph.nodes
            if node.op == "reduce"
            for producer in (graph.values[value].producer for value in node.operands)
        }
        self.launches: list[Launch] = []
        self.barrier = _Barrier()

    def visit(self, index: int) -> None:
        """Decide whether a node's result is kept; if so it becomes a launch."""
        node = self.graph.nodes[index]
        if not self.varying[index]:
            return
        self.barrier.reach(node)
        if node.op in SOURCES:
            self.kept[index] = True
            return
        self.reads[index] = reads = self._reads_of(node)
        self.chain[index] = self._chain_of(index, node)
        self.kept[index] = self._keeps(index, node, reads)
        if self.kept[index]:
            producers = {self.graph.values[value].producer for value in reads}
            depths = (self.depth[i] for i in producers)
            self.depth[index] = 1 + max(depths, default=0)
            after: tuple[int, ...] = ()
            if RECOMPUTED_BY_JAX in node.location:
                self.depth[index] = max(self.depth[index], 1 + self.barrier.depth)
                after = self.barrier.values
            self.barrier.add(node, self.depth[index])
            early = node.op == "select_window"  # needs no gradient: runs with the forward pass
            position = max(producers) if early else index
            made = Launch([index], reads, self.depth[index], position, after=after)
            self.launches.append(made)

    def _keeps(self, index: int, node: Node, reads: Reads) -> bool:
        if index in self.forced or node.op in WHOLE:
            return True
        if node.op not in CHEAP and len(reads) > READS_LIMIT:
            return True
        return self.saves(index, reads, self.consumers[index])

    def saves(self, index: int, reads: Reads, count: int) -> bool:
        """Return whether keeping what ``count`` others need moves less than making it again."""
        node = self.graph.nodes[index]
        size = sum(self.graph.values[value].bytes for value in node.results)
        if node.op in CHEAP or size <= SMALL_BYTES:
            return False
        if self.chain[index] >= LONG_CHAIN and index in self.saved:
            return True
        total = sum(read[0] for read in reads.values())
        large = sum(1 for read in reads.values() if read[0] > size / 4)
        again, once = (count - 1) * total, (count + 1) * size
        more = again >= once if self.today else again > once  # of equals what computes less
        return (count > 1 and more) or large > MANY_READS

    def _chain_of(self, index: int, node: Node) -> int:
        """Return operations in a row that a reader of this node would have to repeat.

        The ``exp`` of a softmax is no more than one of them: XLA computes it for the sum and again
        for what the sum divides.
        """
        producers = (self.graph.values[value].producer for value in node.operands)
        longest = max((self.chain[i] for i in producers if not self.kept[i]), default=0)
        long = node.op in LONG or (node.op in self.long and index not in self.summed)
        return longest + (LONG_CHAIN if long else node.op not in CHEAP)

    def _reads_of(self, node: Node) -> Reads:
        merged: Reads = {}
        for position, value in enumerate(node.operands):
            limit = self._limit(node, position)
            for source, read in self._contribution(value).items():
                capped = read if limit is None or read[0] <= limit[0] else limit
                if source not in merged or merged[source][0] < capped[0]:
                    merged[source] = capped
        return merged

    def _contribution(self, value: int) -> Reads:
        producer = self.graph.values[value].producer
        if not self.varying[producer]:
            return {}
        if self.kept[producer]:
            held = self.graph.values[value]
            return {value: (held.bytes, held.elements)}
        return self.reads[producer]

    def _limit(self, node: Node, position: int) -> tuple[int, int] | None:
        """Return the most that a node reads of one operand; ``None`` for all of it."""
        if position or node.op not in (*PARTIAL, "dynamic_update_slice", "scatter"):
            return None
        if node.op in PARTIAL:
            result = self.graph.values[node.results[0]]
            return result.bytes, result.elements
        return 0, 0

    def _count_consumers(self) -> list[int]:
        counts = [0] * len(self.graph.nodes)
        for index, node in enumerate(self.graph.nodes):
            if self.varying[index]:
                for producer in {self.graph.values[value].producer for value in node.operands}:
                    counts[producer] += 1
        for value in self.graph.outputs:
            counts[self.graph.values[value].producer] += 1
        return counts

    def _forced(self) -> set[int]:
        """Return nodes whose results must be in memory wherever the rule would stand."""
        graph = self.graph
        values = [graph.strip(value, frozenset({"reshape"})) for value in graph.outputs]
        for index, node in enumerate(graph.nodes):
            if not self.varying[index]:
                continue
            if node.op == "convolution":
                values += [graph.strip(value, KERNEL_VIEWS) for value in node.operands[:2]]
            elif node.op == "dot_general":
                values += [graph.strip(value, VIEWS) for value in node.operands]
            elif node.op == "loop_state":
                values += [node.operands[0], node.attributes["feedback"]]
            values += [
                graph.strip(value, LAZY)
                for value in node.operands
                if graph.producer(value).scope != node.scope
            ]
        producers = {graph.values[value].producer for value in values}
        return {
            index
            for index in producers
            if self.varying[index] and graph.nodes[index].op not in (*SOURCES, "loop_result")
        }

    def _saved(self) -> set[int]:
        """Return nodes of the forward pass that the backward pass reads, too."""
        backward = [phase_of(node.location) == "backward" for node in self.graph.nodes]
        return {
            self.graph.values[value].producer
            for index, node in enumerate(self.graph.nodes)
            if backward[index] and self.varying[index]
            for value in node.operands
            if not backward[self.graph.values[value].producer]
        }


def _assign_members(graph: Graph, rule: _Rule, launches: list[Launch]) -> None:
    """Put every fused node into one launch: the first that needs it."""
    taken: set[int] = set()
    for launch in launches:
        queue = list(launch.roots)
        while queue:
            index = queue.pop()
            if index in taken:
                continue
            taken.add(index)
            launch.members.append(index)
            queue.extend(
                producer
                for producer in (graph.values[v].producer for v in graph.nodes[index].operands)
                if rule.varying[producer] and not rule.kept[producer]
            )


def in_order(graph: Graph, launches: list[Launch]) -> list[Launch]:
    """Sort launches by position, but none before what it reads.

    Raises:
        ToolError: Some wait for each other, which no program should make them do.
    """
    number = {v: i for i, launch in enumerate(launches) for v in results_of(graph, launch)}
    needs = [
        {number[v] for v in (*launch.reads, *launch.after) if v in number} - {i}
        for i, launch in enumerate(launches)
    ]
    readers: dict[int, list[int]] = {}
    for index, sources in enumerate(needs):
        for source in sources:
            readers.setdefault(source, []).append(index)
    ready = [(launches[i].position, i) for i, sources in enumerate(needs) if not sources]
    heapq.heapify(ready)
    ordered = []
    while ready:
        _, index = heapq.heappop(ready)
        ordered.append(launches[index])
        for reader in readers.get(index, ()):
            needs[reader].discard(index)
            if not needs[reader]:
                heapq.heappush(ready, (launches[reader].position, reader))
    if len(ordered) < len(launches):
        raise ToolError("the kernels of this program wait for each other")
    return ordered
