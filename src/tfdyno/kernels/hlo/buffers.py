"""Which buffers a scheduled module needs and for how long: liveness with aliasing, as XLA does it.

Views and tuples need none; loops, updates in place and some elementwise fusions write where their
operand lies; results that take an argument's place, and results of their own, are no temporaries.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tfdyno.core.base.interval import Scaled
from tfdyno.kernels.hlo.fusions import VIEWS
from tfdyno.kernels.hlo.kernels import branch_names
from tfdyno.kernels.hlo.library import scratch_bytes
from tfdyno.kernels.hlo.text import Computation, HloModule, Instruction, Shape, Type, leaves

if TYPE_CHECKING:
    from tfdyno.kernels.records import Sizes

Tree = int | tuple["Tree", ...]
"""Numbers of buffers in the shape of a type."""

POINTERS = frozenset({"bitcast", "opt-barrier", "add-dependency", "all-reduce-done"})
CONSTANT = -1
_ALIASED = re.compile(r"\{(\d*)\}: \((\d+), \{\}")
_ELEMENTWISE = frozenset(
    "abs add and atan2 cbrt ceil clamp compare complex convert copy cosine divide erf exponential "
    "exponential-minus-one floor imag is-finite log log-plus-one logistic maximum minimum multiply "
    "negate not or popcnt power real reduce-precision remainder round-nearest-afz "
    "round-nearest-even rsqrt select shift-left shift-right-arithmetic shift-right-logical sign "
    "sine sqrt subtract tan tanh xor".split()
)


@dataclass(slots=True)
class Temporary:
    """One temporary buffer: what fills it first and the steps (both included) that need it."""

    instruction: Instruction
    shape: Shape
    scratch: bool
    start: int
    end: int
    size: Scaled


@dataclass(slots=True)
class _Event:
    """One instruction of the flattened schedule: the buffers that it reads and makes."""

    instruction: Instruction
    operands: list[Tree]
    made: list[int] = field(default_factory=list)


class BufferReader:
    """Walks the schedule once; ``temporaries`` are what it found."""

    def __init__(self, module: HloModule, sizes: Sizes) -> None:
        """Walk the ENTRY computation; loops and branches are walked where they stand."""
        self.module, self.sizes = module, sizes
        self._shapes: list[Shape] = []
        self._makers: list[Instruction] = []
        self._into: dict[int, int] = {}
        self._events: list[_Event] = []
        self._last: dict[int, int] = {}
        arguments = tuple(self._new(p, p.type) for p in module.entry.parameters())
        self._kept = set(range(len(self._shapes)))
        result = self._walk(module.entry, arguments)
        self._outputs(result, arguments)
        self.temporaries = self._temporaries()

    @property
    def steps(self) -> int:
        """Instructions in the flattened schedule."""
        return len(self._events)

    def _new(self, instruction: Instruction, kind: Type) -> Tree:
        if isinstance(kind, tuple):
            return tuple(self._new(instruction, part) for part in kind)
        self._shapes.append(kind)
        self._makers.append(instruction)
        return len(self._shapes) - 1

    def _walk(self, scope: Computation, arguments: tuple[Tree, ...]) -> Tree:
        values: dict[str, Tree] = {}
        for instruction in scope.instructions.values():
            operands = [values[name] for name in instruction.operands if name in values]
            values[instruction.name] = self._value(instruction, operands, arguments)
        return values[scope.root.name]

    def _value(
        self, instruction: Instruction, operands: list[Tree], arguments: tuple[Tree, ...]
    ) -> Tree:
        match instruction.opcode:
            case "parameter":
                return arguments[instruction.number]
            case "constant" | "iota" | "after-all":
                return CONSTANT
            case "tuple":
                return tuple(operands)
            case "get-tuple-element":
                whole = operands[0]
                return whole[instruction.number] if isinstance(whole, tuple) else whole
            case "async-done":
                return operands[0][1] if isinstance(operands[0], tuple) else operands[0]
        if instruction.opcode in POINTERS:
            return operands[0]
        event = _Event(instruction, operands)
        self._events.append(event)
        made = self._made(event)
        for tree in operands:
            self._read(tree, len(self._events) - 1)
        return made

    def _made(self, event: _Event) -> Tree:
        instruction, operands = event.instruction, event.operands
        named = self.module.computations
        match instruction.opcode:
            case "while":
                for side in ("condition", "body"):
                    result = self._walk(named[instruction.attribute(side)], (operands[0],))
                self._unite(result, operands[0])
                return operands[0]
            case "call" if instruction.calls in named:
                return self._walk(named[instruction.calls], tuple(operands))
            case "async-start" if instruction.calls in named:
                return tuple(operands), self._walk(named[instruction.calls], tuple(operands))
            case "conditional":
                whole = self._fresh(event)
                for name, operand in zip(branch_names(instruction), operands[1:], strict=False):
                    self._unite(self._walk(named[name], (operand,)), whole)
                return whole
        place = self._in_place(event)
        return self._fresh(event) if place is None else place

    def _fresh(self, event: _Event) -> Tree:
        before = len(self._shapes)
        tree = self._new(event.instruction, event.instruction.type)
        event.made = list(range(before, len(self._shapes)))
        return tree

    def _in_place(self, event: _Event) -> Tree | None:
        """Return the operand that an update in place, or a call with aliased results, writes to."""
        instruction, operands = event.instruction, event.operands
        if instruction.opcode in ("dynamic-update-slice", "scatter"):
            return operands[0]
        fused = self.module.computations.get(instruction.calls)
        if instruction.opcode == "fusion" and fused and isinstance(instruction.type, Shape):
            number = _updated_parameter(fused)
            return operands[number] if number is not None else None
        pairs = _ALIASED.findall(instruction.group("output_to_operand_aliasing"))
        if not pairs:
            return None
        tree = self._fresh(event)
        parts = tree if isinstance(tree, tuple) else (tree,)
        for result, operand in pairs:
            self._unite(parts[int(result or 0)], operands[int(operand)])
        return tree

    def _unite(self, made: Tree, place: Tree) -> None:
        """Let what was ``made`` lie in ``place``."""
        for source, target in zip(flat(made), flat(place), strict=False):
            a, b = self._root(source), self._root(target)
            if CONSTANT not in (a, b) and a != b and a not in self._kept:
                self._into[a] = b
                self._read(b, self._last.get(a, len(self._events) - 1))

    def _root(self, buffer: int) -> int:
        while buffer in self._into:
            buffer = self._into[buffer]
        return buffer

    def _read(self, tree: Tree, step: int) -> None:
        for buffer in flat(tree):
            root = self._root(buffer)
            self._last[root] = max(self._last.get(root, 0), step)

    def _outputs(self, result: Tree, arguments: tuple[Tree, ...]) -> None:
        """Results live in the place of an argument or in their own: neither is a temporary."""
        for number, tree in enumerate(result if isinstance(result, tuple) else (result,)):
            aliased = self.module.aliases.get(number)
            if aliased is not None:
                self._unite(tree, arguments[aliased])
            self._kept |= {self._root(buffer) for buffer in flat(tree)}

    def _temporaries(self) -> list[Temporary]:
        spans: dict[int, Temporary] = {}
        for step, event in enumerate(self._events):
            for buffer in event.made:
                root = self._root(buffer)
                if root != buffer or root in self._kept:
                    continue
                over = self._overwritten(event, step, root, spans)
                if over is not None:
                    self._into[root] = over
                    spans[over].end = max(step, self._last.get(root, step))
                    continue
                spans[root] = self._temporary(root, step)
        return [span for span in spans.values() if span.shape.bytes]

    def _temporary(self, buffer: int, step: int) -> Temporary:
        instruction, shape = self._makers[buffer], self._shapes[buffer]
        last = buffer + 1 == len(self._makers) or self._makers[buffer + 1] is not instruction
        return Temporary(
            instruction=instruction,
            shape=shape,
            scratch=last and scratch_bytes(instruction) > 0,
            start=step,
            end=max(step, self._last.get(buffer, step)),
            size=self.sizes.bytes(shape),
        )

    def _overwritten(
        self, event: _Event, step: int, made: int, spans: dict[int, Temporary]
    ) -> int | None:
        """Return an operand of the same size that dies here and that the fusion may write over."""
        fused = self.module.computations.get(event.instruction.calls)
        if event.instruction.opcode != "fusion" or fused is None:
            return None
        size = self._shapes[made].bytes
        for parameter, tree in zip(fused.parameters(), event.operands, strict=False):
            root = self._root(tree) if isinstance(tree, int) else CONSTANT
            span = spans.get(root)
            if span is None or span.shape.bytes != size or not span.start < span.end == step:
                continue
            if _elementwise(fused, parameter):
                return root
        return None


def flat(tree: Tree) -> list[int]:
    """Return the buffers of a tree in order."""
    return [tree] if isinstance(tree, int) else [leaf for part in tree for leaf in flat(part)]


def _updated_parameter(fused: Computation) -> int | None:
    """Return number of the parameter that the root of a fusion updates in place."""
    root = fused.root
    while root.opcode in VIEWS and root.operands:
        root = fused.instructions[root.operands[0]]
    if root.opcode not in ("dynamic-update-slice", "scatter"):
        return None
    origin = fused.instructions[root.operands[0]]
    while origin.opcode in VIEWS and origin.operands:
        origin = fused.instructions[origin.operands[0]]
    return origin.number if origin.opcode == "parameter" else None


def _elementwise(fused: Computation, parameter: Instruction) -> bool:
    """Return whether every use of a parameter writes only the element it reads."""
    reached, elements = [parameter.name], leaves(parameter.type)[0].elements
    for name in reached:
        for user in fused.instructions.values():
            if name not in user.operands or user.opcode == "tuple":
                continue
            same = leaves(user.type)[0].elements == elements
            if not same or user.opcode not in _ELEMENTWISE | {"bitcast"}:
                return False
            if user.name not in reached:
                reached.append(user.name)
    return True
