"""Which class of work an operation is: a table of patterns, the first that fits says it."""

from __future__ import annotations

import csv
import functools
import re
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).parent / "data" / "operation_classes.csv"
OTHER = "other"
_PREFIX = re.compile(r"^_?(Mkl|Itex|OneDnn)(Native)?|^_(?=Fused)|^_(?=[A-Z])")
"""Names that oneDNN's and the grappler's own forms of an operation begin with."""


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
    """Name of a GPU's kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    field: str
    pattern: re.Pattern[str]
    operation_class: str


def class_of(operation: Operation) -> str:
    """One of ``OPERATION_CLASSES``.

    A type, and each opcode, must fit a pattern whole; of scopes and kernels a part is enough.
    """
    for rule in _rules():
        if _fits(rule, operation):
            return rule.operation_class
    return OTHER


def _fits(rule: _Rule, operation: Operation) -> bool:
    if rule.field == "type":
        return bool(operation.type and rule.pattern.fullmatch(_PREFIX.sub("", operation.type)))
    if rule.field == "scope":
        return bool(operation.scope and rule.pattern.search(operation.scope))
    if rule.field == "kernel":
        return bool(operation.kernel and rule.pattern.search(operation.kernel))
    return any(rule.pattern.fullmatch(opcode) for opcode in operation.hlo)


@functools.cache
def _rules() -> tuple[_Rule, ...]:
    with TABLE.open(newline="") as file:
        return tuple(
            _Rule(
                field=row["field"],
                pattern=re.compile(row["pattern"]),
                operation_class=row["class"],
            )
            for row in csv.DictReader(file)
        )
