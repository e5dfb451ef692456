"""Optimised HLO text, as XLA prints it, into computations and instructions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod

from tfdyno.core.base.errors import ToolError

BITS = {
    "pred": 8, "s2": 2, "u2": 2, "s4": 4, "u4": 4, "f4e2m1fn": 4, "s8": 8, "u8": 8, "f8e3m4": 8,
    "f8e4m3": 8, "f8e4m3fn": 8, "f8e4m3fnuz": 8, "f8e4m3b11fnuz": 8, "f8e5m2": 8, "f8e5m2fnuz": 8,
    "f8e8m0fnu": 8, "s16": 16, "u16": 16, "f16": 16, "bf16": 16, "s32": 32, "u32": 32, "f32": 32,
    "s64": 64, "u64": 64, "f64": 64, "c64": 64, "c128": 128,
}  # fmt: skip
"""Bits of an element; tokens and opaque values have none."""

_HEADER = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{$")
_LINE = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = ")
_SHAPE = re.compile(r"([a-z]\w*)\[([\d,<=]*)\]")
_NAME = re.compile(r"%([\w.\-]+)")
_ALIAS = re.compile(r"\{([\d, ]*)\}: \((\d+), \{([\d, ]*)\}")
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Shape:
    """An array: element type and dimensions."""

    dtype: str
    dims: tuple[int, ...]

    @property
    def elements(self) -> int:
        """Number of elements; 1 for a scalar."""
        return prod(self.dims)

    @property
    def bytes(self) -> int:
        """Size in memory."""
        return -(-self.elements * BITS.get(self.dtype, 0) // 8)


Type = Shape | tuple["Type", ...]
"""An array or a (nested) tuple of arrays."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One line of a computation."""

    name: str
    opcode: str
    type: Type
    operands: tuple[str, ...]
    inside: str
    """What stands between the parentheses: parameter number, constant, operands."""
    attributes: str
    """Everything after the parentheses."""

    def attribute(self, key: str) -> str:
        """Return the value of ``key=value`` up to the next comma or space; empty where absent."""
        match = re.search(rf"(?<![\w]){key}=%?([^\s,}}]*)", self.attributes)
        return match[1] if match else ""

    def group(self, key: str) -> str:
        """Return the text inside the braces of ``key={...}``; empty where absent."""
        start = self.attributes.find(f"{key}={{")
        if start < 0:
            return ""
        start += len(key) + 1
        return self.attributes[start + 1 : _closing(self.attributes, start)]

    @property
    def location(self) -> str:
        """``op_name`` of the metadata: the path of scopes that it was traced in."""
        match = _OP_NAME.search(self.attributes)
        return match[1] if match else ""

    @property
    def calls(self) -> str:
        """The computation that a fusion, call or asynchronous start runs."""
        return self.attribute("calls") or self.attribute("to_apply")

    @property
    def number(self) -> int:
        """Number of a parameter, or index of a ``get-tuple-element``."""
        return int(self.attribute("index") or self.inside)


@dataclass(frozen=True, slots=True)
class Computation:
    """Instructions in the order of the schedule."""

    name: str
    instructions: dict[str, Instruction] = field(default_factory=dict)
    roots: list[str] = field(default_factory=list)

    @property
    def root(self) -> Instruction:
        """The instruction whose value is the result."""
        return self.instructions[self.roots[0]]

    def parameters(self) -> list[Instruction]:
        """Return the parameters by number."""
        found = (i for i in self.instructions.values() if i.opcode == "parameter")
        return sorted(found, key=lambda instruction: instruction.number)


@dataclass(frozen=True, slots=True)
class HloModule:
    """All computations, the one that is run, and which results lie in the place of arguments."""

    entry: Computation
    computations: dict[str, Computation]
    aliases: dict[int, int]
    """Number of a result -> number of the argument whose memory it takes."""


def parse(text: str) -> HloModule:
    """Read a scheduled module.

    Raises:
        ToolError: The text is not an HLO module with an ENTRY computation.
    """
    computations: dict[str, Computation] = {}
    entry, current = "", None
    for line in text.splitlines():
        if line.startswith(" ") and current is not None:
            _add(current, line)
        elif header := _HEADER.match(line):
            current = computations.setdefault(header[2], Computation(header[2]))
            entry = header[2] if header[1] else entry
        elif line.startswith("}"):
            current = None
    if entry not in computations:
        raise ToolError("the compiled program cannot be read", why="it has no ENTRY computation")
    return HloModule(computations[entry], computations, _aliases(text[: text.find("\n")]))


def leaves(kind: Type) -> tuple[Shape, ...]:
    """Return the arrays of a type, nested tuples flattened."""
    if isinstance(kind, Shape):
        return (kind,)
    return tuple(shape for part in kind for shape in leaves(part))


@lru_cache(maxsize=16384)
def parse_type(text: str) -> Type:
    """Read ``f32[2,3]{1,0}`` or ``(f32[2], (s8[4]))`` as a type."""
    if not text.startswith("("):
        match = _SHAPE.match(text)
        if not match:
            return Shape("token", (0,))
        return Shape(match[1], tuple(int(d.lstrip("<=")) for d in match[2].split(",") if d))
    return tuple(parse_type(part) for part in split(text[1 : _closing(text, 0)]))


def split(text: str) -> list[str]:
    """Split at the commas outside every bracket; comments are dropped."""
    parts, depth, start = [], 0, 0
    text = re.sub(r"/\*.*?\*/", "", text)
    for position, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def _add(computation: Computation, line: str) -> None:
    match = _LINE.match(line)
    if not match:
        return
    rest = line[match.end() :]
    end = _closing(rest, 0) + 1 if rest.startswith("(") else rest.index(" ")
    kind, rest = rest[:end], rest[end:].lstrip()
    opening = rest.index("(")
    closing = _closing(rest, opening)
    opcode, inside = rest[:opening], rest[opening + 1 : closing]
    operands = () if opcode in ("constant", "parameter") else tuple(_NAME.findall(inside))
    computation.instructions[match[2]] = Instruction(
        match[2], opcode, parse_type(kind), operands, inside, rest[closing + 1 :]
    )
    if match[1]:
        computation.roots.append(match[2])


def _closing(text: str, opening: int) -> int:
    """Find the bracket that closes the one at ``opening``; quoted text is passed over."""
    depth, quoted, position = 0, False, opening
    while position < len(text):
        character = text[position]
        if quoted:
            position += character == "\\"
            quoted = character != '"'
        elif character == '"':
            quoted = True
        else:
            depth += (character in "([{") - (character in ")]}")
            if depth == 0:
                return position
        position += 1
    return len(text)


def _aliases(header: str) -> dict[int, int]:
    start = header.find("input_output_alias={")
    if start < 0:
        return {}
    opening = start + len("input_output_alias=")
    found = _ALIAS.findall(header[opening : _closing(header, opening)])
    return {int(result or 0): int(argument) for result, argument, _ in found if "," not in result}
