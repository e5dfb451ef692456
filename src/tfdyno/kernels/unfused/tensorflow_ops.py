"""The kernels that TensorFlow runs for a traced step when nothing is compiled: one an operation.

Every operation of the traced graph that computes something gets a kernel of its own. Reshapes,
transposes and broadcasts are free: TensorFlow's kernels take them as part of their reading. What a
framework does as one operation (random numbers, a loss with its gradient) is one kernel here, too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tfdyno.kernels.graph import Graph, Node, TensorType, live_nodes, varying_nodes
from tfdyno.kernels.layers import phase_of

if TYPE_CHECKING:
    from collections.abc import Callable

VIEWS = frozenset(
    {"reshape", "transpose", "reverse", "broadcast_in_dim", "broadcast", "loop_result"}
)
"""Operations without a buffer of their own."""
MOVES = frozenset({"transpose", "reverse"})
"""Views whose elements lie elsewhere: what reads them cannot write over what they show."""
ELEMENTWISE = frozenset(
    """
    abs add and atan2 bitcast_convert cbrt ceil clamp compare cosine divide erf erf_inv erfc
    exponential exponential_minus_one floor is_finite log log_plus_one logistic maximum minimum
    multiply negate not or power remainder round_nearest_even rsqrt select shift_left
    shift_right_arithmetic shift_right_logical sign sine sqrt square subtract tan tanh xor
    """.split()
)
"""Kernels that may write their result over an operand nobody else needs."""
IN_PLACE = frozenset({"dynamic_update_slice", "scatter"})
"""Kernels that write into their first operand."""
_RANDOM = re.compile(r"^(.*\bjit\((_uniform|_normal|_truncated_normal|_randint|_gumbel)\))")
_LOSS = re.compile(r"^(.*\b(sparse_)?categorical_crossentropy)")


@dataclass(slots=True)
class Operation:
    """A kernel: what it reads and writes (buffers) and what else it waits for."""

    node: int
    """The node of the graph that it stands for; its place in the program."""
    kind: str
    reads: list[int]
    writes: list[int]
    over: list[int] = field(default_factory=list)
    """Those of ``reads`` that the result may take the memory of."""
    after: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Operations:
    """The kernels of a step in program order.

    Buffers are named by the value of the graph that they hold; numbers beyond those are copies.
    """

    graph: Graph
    items: list[Operation]
    backward: list[bool]
    """Whether a node is part of the backward pass."""
    outputs: list[int]
    """The buffers of the results, in their order."""
    types: dict[int, TensorType | None] = field(default_factory=dict)
    """What a buffer holds where that is not its value; None: it takes no memory."""

    def type_of(self, buffer: int) -> TensorType | None:
        """Return what a buffer holds; None: it takes no memory."""
        return self.types[buffer] if buffer in self.types else self.graph.values[buffer].type

    def bytes(self, buffer: int) -> int:
        """Return size of a buffer at the traced batch."""
        kind = self.type_of(buffer)
        return 0 if kind is None else kind.bytes

    def new(self, kind: TensorType | None) -> int:
        """Return a buffer that no value of the graph has."""
        buffer = len(self.graph.values) + len(self.types)
        self.types[buffer] = kind
        return buffer

    def producers(self) -> dict[int, Operation]:
        """Map each buffer to the kernel that writes it."""
        return {buffer: each for each in self.items for buffer in each.writes}

    def readers(self) -> defaultdict[int, list[Operation]]:
        """Map each buffer to the kernels that read it."""
        found: defaultdict[int, list[Operation]] = defaultdict(list)
        for each in self.items:
            for buffer in dict.fromkeys(each.reads):
                found[buffer].append(each)
        return found


def operations_of(graph: Graph) -> Operations:
    """Return the kernels of a graph, before TensorFlow's own ways with gradients."""
    live, varying = live_nodes(graph), varying_nodes(graph)
    needed = [a and b for a, b in zip(live, varying, strict=True)]
    pooled = _pooling(graph)
    found = Operations(
        graph,
        [],
        [phase_of(node.location) == "backward" for node in graph.nodes],
        [buffer_of(graph, value)[0] for value in graph.outputs],
    )
    for index, node in enumerate(graph.nodes):
        if needed[index] and index not in pooled and not _is_free(graph, node):
            found.items.append(_operation(graph, index, node, needed, pooled))
    _look_up_before_casting(found)
    merge(found, lambda each: _key(_RANDOM, graph, each))
    _merge_losses(found)
    return found


def _look_up_before_casting(found: Operations) -> None:
    """Rows of a table are looked up before they are cast: Grappler moves the cast behind."""
    readers = found.readers()
    tables = {
        each.writes[0]: each.reads
        for each in found.items
        if each.kind == "convert"
        and each.writes[0] not in found.outputs
        and all(reader.kind == "gather" for reader in readers[each.writes[0]])
    }
    found.items = [each for each in found.items if tables.keys().isdisjoint(each.writes)]
    for each in found.items:
        each.reads = [source for b in each.reads for source in tables.get(b, [b])]


def buffer_of(graph: Graph, value: int) -> tuple[int, bool]:
    """Return the value whose memory a value lies in, and whether element for element."""
    same = True
    while True:
        node = graph.producer(value)
        if not _is_free(graph, node) or not node.operands:
            return value, same
        source = node.operands[0]
        elements = graph.values[source].elements == graph.values[value].elements
        same = same and elements and node.op not in MOVES
        value = source


def _is_free(graph: Graph, node: Node) -> bool:
    if node.op in VIEWS or node.op == "argument":
        return True
    if node.op == "loop_state":  # where the loop begins with zeros, they take memory
        return graph.producer(buffer_of(graph, node.operands[0])[0]).op != "constant"
    # XLA pads a pooled image and cuts the edges off again: a framework's kernel does neither.
    return node.op == "slice" and graph.producer(node.operands[0]).op == "select_and_scatter"


def _pooling(graph: Graph) -> dict[int, int]:
    """Return nodes that only serve the gradient of a pooling -> the value that was pooled."""
    found: dict[int, int] = {}
    for node in graph.nodes:
        if node.op == "select_and_scatter":
            index = graph.values[node.operands[0]].producer
            source = graph.nodes[index].operands[0]
            padded = graph.producer(source)
            found[index] = source
            if padded.op == "pad":
                found[index] = padded.operands[0]
                found[graph.values[source].producer] = padded.operands[0]
    return found


def _operation(
    graph: Graph, index: int, node: Node, needed: list[bool], pooled: dict[int, int]
) -> Operation:
    reads, over = [], []
    for position, value in enumerate(node.operands):
        buffer, same = buffer_of(graph, pooled.get(graph.values[value].producer, value))
        if needed[graph.values[buffer].producer]:
            reads.append(buffer)
            if same and (node.op in ELEMENTWISE or (node.op in IN_PLACE and position == 0)):
                over.append(buffer)
    return Operation(index, node.op, reads, list(node.results), over)


def merge(found: Operations, key: Callable[[Operation], str | None]) -> None:
    """Make one kernel of connected ones with the same key; it writes what others need of them.

    Its result may take the place of what one of them might have written over.
    """
    merged: dict[int, Operation] = {}
    around = _Neighbours(found)
    for members in _groups(found.items, key):
        reads, writes = around.border(members)
        if len(members) == 1 or not around.may_merge(reads, writes):
            continue
        last = members[-1]
        merged.update({id(each): Operation(-1, "", [], []) for each in members})
        over = {buffer for each in members for buffer in each.over}
        merged[id(last)] = Operation(
            last.node, "group", reads, writes, [buffer for buffer in reads if buffer in over]
        )
    kept = (merged.get(id(each), each) for each in found.items)
    found.items = [each for each in kept if each.node >= 0]


def _groups(
    items: list[Operation], key: Callable[[Operation], str | None]
) -> list[list[Operation]]:
    """Return kernels with the same key, apart where no data goes from one to the other."""
    of: dict[int, list[Operation]] = {}
    made: dict[tuple[str, int], Operation] = {}
    for each in items:
        name = key(each)
        if name is None:
            continue
        group = [each]
        for buffer in each.reads:
            maker = made.get((name, buffer))
            if maker is not None and of[id(maker)] is not group:
                group = of[id(maker)] + group
                of.update({id(member): group for member in group})
        of[id(each)] = group
        made.update({(name, buffer): each for buffer in each.writes})
    unique = {id(group): group for group in of.values()}
    return [sorted(group, key=lambda each: each.node) for group in unique.values()]


class _Neighbours:
    """Who makes and who reads every buffer: looked up once, however many groups are merged."""

    def __init__(self, found: Operations) -> None:
        self.makers, self.readers = found.producers(), found.readers()
        self.outputs, self.end = set(found.outputs), len(found.graph.nodes)

    def border(self, members: list[Operation]) -> tuple[list[int], list[int]]:
        """Return what kernels read from others, and what of theirs others read."""
        own = {id(each) for each in members}
        made = {buffer for each in members for buffer in each.writes}
        reads = dict.fromkeys(b for each in members for b in each.reads if b not in made)
        return list(reads), [b for each in members for b in each.writes if self._leaves(b, own)]

    def may_merge(self, reads: list[int], writes: list[int]) -> bool:
        """Return whether all that a merged kernel reads is made before anything that it writes."""
        made = [self.makers[buffer].node for buffer in reads if buffer in self.makers]
        first = min((self.makers[buffer].node for buffer in writes), default=self.end)
        return max(made, default=-1) < first

    def _leaves(self, buffer: int, own: set[int]) -> bool:
        """Return whether others than ``own`` need a buffer."""
        readers = self.readers.get(buffer, ())
        return buffer in self.outputs or any(id(each) not in own for each in readers)


def _merge_losses(found: Operations) -> None:
    """Merge cross-entropy from logits: one kernel that makes the gradient too, over the logits."""
    graph = found.graph

    def name(each: Operation) -> str | None:
        found_name = _key(_LOSS, graph, each)
        return without_phase(found_name) if found_name else None

    for members in _groups(found.items, name):
        forward = [each for each in members if not found.backward[each.node]]
        backward = [each for each in members if found.backward[each.node]]
        softmax = any("log_softmax" in graph.nodes[each.node].location for each in forward)
        if backward and softmax:
            _merge_loss(found, forward, backward)


def _merge_loss(found: Operations, forward: list[Operation], backward: list[Operation]) -> None:
    names = {id(each) for each in (*forward, *backward)}
    rest = [each for each in found.items if id(each) not in names]
    wanted = set(found.outputs).union(*(each.reads for each in rest))
    made = {buffer for each in forward for buffer in each.writes}
    around = _Neighbours(found)
    reads, theirs = around.border(forward)[0], around.border(backward)[0]
    losses = [b for each in forward for b in each.writes if b in wanted]
    gradients = [b for each in backward for b in each.writes if b in wanted]
    others = [buffer for buffer in theirs if buffer not in made]
    if not (reads and around.may_merge(reads, losses) and around.may_merge(others, gradients)):
        return
    logits = max(reads, key=found.bytes)
    kept = found.new(found.type_of(logits))
    first = Operation(forward[-1].node, "loss", reads, [kept, *losses], [logits])
    second = Operation(backward[-1].node, "loss", [kept, *others], gradients, [kept])
    found.items = sorted([*rest, first, second], key=lambda each: each.node)


def without_phase(location: str) -> str:
    """Return a location that forward and backward pass of a layer share."""
    return re.sub(r"transpose\(|jvp\(|\)", "", location)


def _key(pattern: re.Pattern[str], graph: Graph, each: Operation) -> str | None:
    match = pattern.match(graph.nodes[each.node].location)
    return match[1] if match else None
