"""Which values a GPU program keeps in memory, and which kernels that makes: a small fusion rule.

The rule and its constants were chosen by comparing bytes with XLA's compiled programs; against them
the bytes of train steps are right to 15 %.
"""

from __future__ import annotations

from tfdyno.runtime.graph import SOURCES, Graph, Node, live_nodes, varying_nodes
from tfdyno.runtime.launch import (
    CHEAP,
    DEAR,
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
)
from tfdyno.runtime.layers import phase_of
from tfdyno.runtime.merging import merge_chains, merge_epilogues, merge_rows, merge_siblings
from tfdyno.runtime.ordering import in_order


def fuse(graph: Graph) -> Fusion:
    """Apply the rule to a graph; launches come in program order of their last root."""
    return _fused(graph, LONG)


def fuse_for_memory(graph: Graph) -> Fusion:
    """The same, keeping what is dear to compute again: what a step holds.

    Only of some cards (``BufferPlan.kept``), and for memory alone: rates were fitted to the others'
    kernels.
    """
    return _fused(graph, DEAR)


def _fused(graph: Graph, long: frozenset[str]) -> Fusion:
    rule = _Rule(graph, long)
    for index in range(len(graph.nodes)):
        rule.visit(index)
    launches = in_order(graph, merge_siblings(graph, rule.launches))
    launches = in_order(graph, merge_chains(graph, merge_rows(graph, launches)))
    _assign_members(graph, rule, launches)
    launches = merge_epilogues(graph, launches)
    return Fusion(launches, rule.varying, rule.kept)


class _Rule:
    def __init__(self, graph: Graph, long: frozenset[str]) -> None:
        self.graph, self.long = graph, long
        live, varying = live_nodes(graph), varying_nodes(graph)
        self.varying = [a and b for a, b in zip(live, varying, strict=True)]
        self.kept = [False] * len(graph.nodes)
        self.reads: list[Reads] = [{} for _ in graph.nodes]
        self.depth = [0] * len(graph.nodes)
        self.chain = [0] * len(graph.nodes)
        self.consumers = self._count_consumers()
        self.forced = self._forced()
        self.saved = self._saved()
        self.summed = {
            producer
            for node in graph.nodes
            if node.op == "reduce"
            for producer in (graph.values[value].producer for value in node.operands)
        }
        self.launches: list[Launch] = []

    def visit(self, index: int) -> None:
        """Decide whether a node's result is kept; if so it becomes a launch."""
        node = self.graph.nodes[index]
        if not self.varying[index]:
            return
        if node.op in SOURCES:
            self.kept[index] = True
            return
        self.reads[index] = reads = self._reads_of(node)
        self.chain[index] = self._chain_of(index, node)
        self.kept[index] = self._keeps(index, node, reads)
        if self.kept[index]:
            producers = {self.graph.values[value].producer for value in reads}
            self.depth[index] = 1 + max((self.depth[i] for i in producers), default=0)
            early = node.op == "select_window"  # needs no gradient: runs with the forward pass
            position = max(producers) if early else index
            self.launches.append(Launch([index], reads, self.depth[index], position))

    def _keeps(self, index: int, node: Node, reads: Reads) -> bool:
        if index in self.forced or node.op in WHOLE:
            return True
        if node.op in CHEAP:
            return False
        size = sum(self.graph.values[value].bytes for value in node.results)
        if len(reads) > READS_LIMIT:
            return True
        if size <= SMALL_BYTES:
            return False
        count = self.consumers[index]
        if self.chain[index] >= LONG_CHAIN and index in self.saved:
            return True
        total = sum(read[0] for read in reads.values())
        large = sum(1 for read in reads.values() if read[0] > size / 4)
        return (count - 1) * total > (count + 1) * size or large > MANY_READS

    def _chain_of(self, index: int, node: Node) -> int:
        """Operations in a row that a reader of this node would have to repeat.

        The ``exp`` of a softmax is no more than one of them: XLA computes it for the sum and again
        for what the sum divides.
        """
        producers = (self.graph.values[value].producer for value in node.operands)
        longest = max((self.chain[i] for i in producers if not self.kept[i]), default=0)
        return longest + (LONG_CHAIN if self._is_long(index, node) else node.op not in CHEAP)

    def _is_long(self, index: int, node: Node) -> bool:
        return node.op in LONG or (node.op in self.long and index not in self.summed)

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
        """The most that a node reads of one operand; ``None`` for all of it."""
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
        """Nodes whose results must be in memory wherever the rule would stand."""
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
        """Nodes of the forward pass that the backward pass reads, too."""
        backward = [phase_of(node.location) == "backward" for node in self.graph.nodes]
        return {
            self.graph.values[value].producer
            for index, node in enumerate(self.graph.nodes)
            if backward[index] and self.varying[index]
            for value in node.operands
            if not backward[self.graph.values[value].producer]
        }


def _assign_members(graph: Graph, rule: _Rule, launches: list[Launch]) -> None:
    """Count every fused node in one launch: the first that needs it."""
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
