"""Programs of XLA in a profile: what is inside of each instruction that a device ran.

A fusion's name says little: ``ynn_fusion`` may be a matrix product. Its program says it, and which
of its numbers have 64 bits.

Source:
    ``xla/service/hlo.proto`` and ``xla/xla_data.proto``; the fields that are read have kept their
    numbers since TensorFlow 2.2.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.profile import wire

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_MODULE, _COMPUTATIONS, _INSTRUCTIONS, _COMPUTATION_ID = 1, 3, 2, 5
_NAME, _OPCODE, _SHAPE, _METADATA, _TARGET, _CALLED = 1, 2, 3, 7, 28, 38
_TYPE, _SCOPE, _ELEMENT_TYPE = 1, 2, 2
_FLOAT64 = {12, 18}
"""``F64`` and ``C128``."""
_VERSION = re.compile(r"\(\d+\)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One instruction of a program, with those that are fused into it."""

    opcodes: tuple[str, ...]
    """Its own first; ``custom-call:TARGET``."""
    type: str = ""
    """The type of the TensorFlow operation that it was made of."""
    scope: str = ""
    is_float64: bool = False


Instructions = dict[tuple[str, str], Instruction]
"""Instructions by module and name."""


def module_title(name: str) -> str:
    """Return ``jit_step`` of ``jit_step(12)``."""
    return _VERSION.sub("", name)


def instructions(programs: Iterable[tuple[str, memoryview]]) -> Instructions:
    """Return instructions of all programs; one that is damaged is left out.

    Args:
        programs: Titles of modules, and the bytes of their ``HloProto``.
    """
    found: Instructions = {}
    for title, data in programs:
        try:
            found.update(_of_program(module_title(title), data))
        except wire.WireError:
            continue
    return found


@dataclass(slots=True)
class _Raw:
    """An instruction with the places of what it holds."""

    name: str
    opcode: str
    shape: tuple[int, int]
    metadata: tuple[int, int]
    called: tuple[int, ...]


def _of_program(title: str, data: memoryview) -> Iterator[tuple[tuple[str, str], Instruction]]:
    inside: dict[int, list[_Raw]] = {}
    for module in _spans(data, (0, len(data)), _MODULE):
        for computation in _spans(data, module, _COMPUTATIONS):
            fields = list(wire.parts(data, *computation))
            places = [(begin, end) for number, kind, begin, end in fields
                      if number == _INSTRUCTIONS and kind == wire.LENGTH]  # fmt: skip
            key = next((v for n, k, v, _ in fields if (n, k) == (_COMPUTATION_ID, wire.VARINT)), 0)
            inside[key] = [_raw(data, place) for place in places]
    wide = {id(raw): _element_type(data, raw.shape) in _FLOAT64
            for every in inside.values() for raw in every}  # fmt: skip
    for raw in (raw for every in inside.values() for raw in every):
        fused = raw.opcode == "fusion"
        every = [raw, *(one for key in raw.called for one in inside.get(key, ()) if fused)]
        texts = _texts(data, raw.metadata, (_TYPE, _SCOPE))
        yield (
            (title, raw.name),
            Instruction(
                opcodes=tuple(dict.fromkeys(one.opcode for one in every)),
                type=texts[0],
                scope=texts[1],
                is_float64=any(wide[id(one)] for one in every),
            ),
        )


def _raw(data: memoryview, place: tuple[int, int]) -> _Raw:
    raw = _Raw(name="", opcode="", shape=(0, 0), metadata=(0, 0), called=())
    target = ""
    for number, kind, begin, end in wire.parts(data, *place):
        if number == _CALLED:
            more = (begin,) if kind == wire.VARINT else tuple(_packed(data, begin, end))
            raw.called = (*raw.called, *more)
        elif kind != wire.LENGTH:
            continue
        elif number == _NAME:
            raw.name = wire.text(data, begin, end)
        elif number == _OPCODE:
            raw.opcode = wire.text(data, begin, end)
        elif number == _TARGET:
            target = wire.text(data, begin, end)
        elif number == _SHAPE:
            raw.shape = begin, end
        elif number == _METADATA:
            raw.metadata = begin, end
    if raw.opcode == "custom-call":
        raw.opcode = f"custom-call:{target}"
    return raw


def _spans(data: memoryview, place: tuple[int, int], number: int) -> list[tuple[int, int]]:
    return [(begin, end) for field, kind, begin, end in wire.parts(data, *place)
            if field == number and kind == wire.LENGTH]  # fmt: skip


def _texts(data: memoryview, place: tuple[int, int], numbers: Sequence[int]) -> list[str]:
    found = {number: wire.text(data, begin, end)
             for number, kind, begin, end in wire.parts(data, *place)
             if number in numbers and kind == wire.LENGTH}  # fmt: skip
    return [found.get(number, "") for number in numbers]


def _packed(data: memoryview, begin: int, end: int) -> Iterator[int]:
    while begin < end:
        value, begin = wire.varint(data, begin)
        yield value


def _element_type(data: memoryview, place: tuple[int, int]) -> int:
    return next((value for number, kind, value, _ in wire.parts(data, *place)
                 if number == _ELEMENT_TYPE and kind == wire.VARINT), 0)  # fmt: skip
