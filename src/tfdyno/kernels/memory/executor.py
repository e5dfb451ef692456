"""TensorFlow's executor: in which order kernels run, and how long their results stay in memory.

A kernel runs once all that it reads is there; those that became ready first run first (a GPU's
kernels never wait for the host, so the executor takes them from one queue). So all that depends on
no data runs at the start of a step. A result is released after its last reader. An elementwise
kernel writes over an operand that nobody else holds. A variable keeps its old memory until it is
assigned, and the new value brings its own.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import ToolError
from tfdyno.kernels.launch import LIBRARY

if TYPE_CHECKING:
    from tfdyno.kernels.graph import TensorType
    from tfdyno.kernels.unfused.tensorflow_ops import Operation, Operations

STEPS = frozenset({"add", "subtract"})
"""Kernels that change a variable by an amount."""


@dataclass(slots=True)
class Stay:
    """Memory from the step of the schedule that takes it to the one that gives it back."""

    buffer: int
    """The first that lay in it; others of the same size may have been written over it."""
    start: int
    end: int = -1
    holds: set[int] = field(default_factory=set)
    """The buffers in it that are still needed."""


def run(operations: Operations, donated: frozenset[int]) -> tuple[list[Operation], list[Stay]]:
    """Return the schedule and everything held in its course, arguments included.

    ``donated`` are the arguments that the step gives new values.

    Raises:
        ToolError: Some kernels wait for each other, which no program should make them do.
    """
    schedule = _schedule(operations, _first_gradients(operations, donated))
    memory = _Memory(operations, _replaced(operations, donated))
    for step, each in enumerate(schedule):
        memory.run(each, step)
    last = max(0, len(schedule) - 1)
    for stay in memory.stays:
        stay.end = last if stay.end < 0 else stay.end
    return schedule, memory.stays


class _Memory:
    """What is held while the schedule goes on."""

    def __init__(self, operations: Operations, replaced: dict[int, int]) -> None:
        self.operations, self.replaced = operations, replaced
        self.arguments = frozenset(operations.graph.arguments)
        self.left = {buffer: len(found) for buffer, found in operations.readers().items()}
        self.kept = {*operations.outputs, *self.arguments}
        self.stays: list[Stay] = []
        self.of: dict[int, Stay] = {}
        """By buffer, while it is needed."""
        for value in operations.graph.arguments:
            self._put(value, None, 0)

    def run(self, each: Operation, step: int) -> None:
        """Take the memory of a kernel's results and give back what nobody needs any more."""
        for buffer in each.writes:
            over = next((self.of[b] for b in each.over if self._may_go(b, buffer)), None)
            self._put(buffer, over, step)
        for buffer in dict.fromkeys(each.reads):
            self.left[buffer] -= 1
        assigned = [self.replaced[buffer] for buffer in each.writes if buffer in self.replaced]
        self.kept.difference_update(assigned)
        for buffer in (*each.reads, *each.writes, *assigned):
            if buffer in self.of and not self.left.get(buffer, 0) and buffer not in self.kept:
                stay = self.of.pop(buffer)
                stay.holds.discard(buffer)
                stay.end = step if not stay.holds else -1

    def _put(self, buffer: int, over: Stay | None, step: int) -> None:
        if over is None:
            over = Stay(buffer, step)
            self.stays.append(over)
        over.holds.add(buffer)
        self.of[buffer] = over

    def _may_go(self, buffer: int, result: int) -> bool:
        """Return whether a kernel that reads ``buffer`` may write ``result`` over it."""
        stay = self.of.get(buffer)
        if stay is None or buffer in self.kept or self.left[buffer] > 1:
            return False
        size, wanted = self.operations.bytes(stay.buffer), self.operations.bytes(result)
        return stay.holds == {buffer} and stay.buffer not in self.arguments and size == wanted


def _first_gradients(operations: Operations, donated: frozenset[int]) -> set[int]:
    """Return numbers of the library calls that hand the gradient on: they read a weight.

    They come before those that make the weight's own gradient, as TensorFlow's gradient functions
    name them in that order.
    """
    weights = set(donated)
    found = set()
    for number, each in enumerate(operations.items):
        if each.reads and weights.issuperset(each.reads):
            weights.update(each.writes)
        backward = each.kind in LIBRARY and operations.backward[each.node]
        if backward and not weights.isdisjoint(each.reads):
            found.add(number)
    return found


def _schedule(operations: Operations, early: set[int]) -> list[Operation]:
    """Order the kernels, with the waits of ``after`` where they do not tie a knot."""
    items = operations.items
    order = _order([{*each.reads, *each.after} for each in items], items, early)
    if len(order) < len(items):
        order = _order([set(each.reads) for each in items], items, early)
    if len(order) < len(items):
        raise ToolError("the operations of this program wait for each other")
    return order


def _order(needs: list[set[int]], items: list[Operation], early: set[int]) -> list[Operation]:
    """Return the kernels that get what they need, those first that got it first."""
    maker = {buffer: number for number, each in enumerate(items) for buffer in each.writes}
    waits = [{maker[b] for b in need if b in maker} - {n} for n, need in enumerate(needs)]
    followers: defaultdict[int, list[int]] = defaultdict(list)
    for number, sources in enumerate(waits):
        for source in sources:
            followers[source].append(number)
    missing = [len(sources) for sources in waits]
    ready = deque(number for number, count in enumerate(missing) if not count)
    order = []
    while ready:
        number = ready.popleft()
        order.append(items[number])
        for follower in sorted(followers[number], key=lambda other: (other not in early, other)):
            missing[follower] -= 1
            if not missing[follower]:
                ready.append(follower)
    return order


def _replaced(operations: Operations, donated: frozenset[int]) -> dict[int, int]:
    """Map each new value to the argument whose place it takes, by type and order."""
    graph = operations.graph
    free: defaultdict[TensorType, deque[int]] = defaultdict(deque)
    for value in graph.arguments:
        if value in donated:
            free[graph.values[value].type].append(value)
    makers, found = operations.producers(), {}
    for value, buffer in zip(graph.outputs, operations.outputs, strict=True):
        same = free[graph.values[value].type]
        if buffer in same:  # handed through as it is
            same.remove(buffer)
        elif same and buffer not in operations.graph.arguments:
            old = same.popleft()
            found[_first_value(operations, makers, buffer, old)] = old
    return found


def _first_value(
    operations: Operations, makers: dict[int, Operation], buffer: int, old: int
) -> int:
    """Return a variable's first new value: AdamW assigns the decayed weight before the update."""
    value = buffer
    while value in makers and makers[value].kind in STEPS and old not in makers[value].reads:
        value = next(iter(makers[value].over), old)
    made = makers.get(value)
    decayed = made is not None and made.kind in STEPS and old in made.reads
    return value if decayed and operations.bytes(value) == operations.bytes(old) else buffer
