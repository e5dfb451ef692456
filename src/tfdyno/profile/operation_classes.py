"""Which class of work an operation is: a table of patterns, by all that a profile tells of it."""

from __future__ import annotations

import csv
import functools
import re
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).parent / "data" / "operation_classes.csv"
OTHER = "other"
NO_WORK = frozenset({"input", "wait", "wrapper"})
"""What stands beside ``OPERATION_CLASSES``: waiting for data or others, or calling what counts by
itself."""
EXCHANGE = ("collective", "packing")
"""``packing``: several tensors laid together for one exchange, or taken apart behind it."""
LAYOUT = "layout"
"""Turns pictures from one order of channels into the other; part of ``data_movement``."""
PACKS = frozenset({"Concat", "ConcatV2", "Split", "SplitV"})
SPECIAL = NO_WORK | {"python", "checkpoint", "copy", "program"}
"""``copy``: between devices, or a device and the host. ``program``: one of XLA runs on a CPU."""
_PREFIX = re.compile(r"^_?(Mkl|Itex|OneDnn)(Native)?|^_(?=[A-Z])")
"""Names that oneDNN's and the grappler's own forms of an operation begin with."""
_SAYS_LITTLE = frozenset({"elementwise", "reduction", "data_movement", OTHER})
"""Classes that say little by themselves: what an operation's scope says is worth more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What a profile tells of an operation; empty: it does not."""

    type: str = ""
    """``MatMul``, as TensorFlow registers it."""
    scope: str = ""
    """Its path in the graph: ``model/dense/MatMul``."""
    hlo: tuple[str, ...] = ()
    """XLA opcodes in it, a fusion's own and those inside; ``custom-call:TARGET``."""
    kernel: str = ""
    """Name of a GPU's kernel, or of XLA's code for a CPU."""

    @property
    def title(self) -> str:
        """How a person finds it."""
        return self.scope or self.kernel or self.type


@functools.cache
def class_of(operation: Operation) -> str:
    """Return one of ``OPERATION_CLASSES`` or ``SPECIAL``, or ``LAYOUT``.

    Opcodes say most, then the kernel, then the type: a convolution's kernel may only turn a layout.
    A type, and each opcode, must fit a pattern whole; of scopes and kernels a part is enough.
    """
    fields = ("hlo", "kernel", "type")
    found = next((one for each in fields if (one := _first(each, operation)) != OTHER), OTHER)
    if found not in _SAYS_LITTLE:
        return found
    by_scope = _first("scope", operation)
    return found if by_scope == OTHER else by_scope


def _first(field: str, operation: Operation) -> str:
    """Return the class of the first row of a field that fits."""
    return next(
        (kind for pattern, kind in _rows()[field] if _fits(field, pattern, operation)), OTHER
    )


def _fits(field: str, pattern: re.Pattern[str], operation: Operation) -> bool:
    if field == "hlo":
        return any(pattern.fullmatch(opcode) for opcode in operation.hlo)
    if field == "type":
        return bool(pattern.fullmatch(_PREFIX.sub("", operation.type)))
    return bool(pattern.search(operation.kernel if field == "kernel" else operation.scope))


@functools.cache
def _rows() -> dict[str, list[tuple[re.Pattern[str], str]]]:
    found: dict[str, list[tuple[re.Pattern[str], str]]] = {}
    with TABLE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["field"], []).append((re.compile(row["pattern"]), row["class"]))
    return found
