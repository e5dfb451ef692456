"""What a fused computation reads, writes and computes, and which class of kernel that makes it."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING

from tfdyno.kernels.hlo.text import Computation, Instruction, Shape, leaves

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.choose.program import KernelKind

SLICES = frozenset({"slice", "dynamic-slice", "gather"})
UPDATES = frozenset({"dynamic-update-slice", "scatter"})
VIEWS = frozenset({"bitcast", "reshape", "get-tuple-element"})
MOVES = frozenset(
    "bitcast bitcast-convert broadcast concatenate constant convert copy dynamic-slice gather "
    "get-tuple-element iota pad parameter reshape reverse slice transpose tuple".split()
)
"""Operations that compute nothing."""


def fusion_kind(fused: Computation, kind: str) -> KernelKind:
    """Class a fusion by what it contains; ``kind`` is XLA's own (``kLoop``, ``kInput``)."""
    ops = {each.opcode for each in fused.instructions.values()}
    if "reduce-window" in ops:
        return "scan" if _is_scan(fused) else "reduce" if "reduce" in ops else "window"
    if "reduce" in ops:
        return "reduce"
    if "transpose" in ops and kind == "kInput":
        return "transpose"
    return "scatter" if "scatter" in ops else "loop"


def shapes_read(fused: Computation) -> list[Shape]:
    """Return what a fusion reads: only slices where it slices, nothing it overwrites."""
    return [shape for each in fused.parameters() for shape in _really_read(fused, each)]


def shapes_written(fused: Computation) -> list[Shape]:
    """Return what a fusion writes: its results, or only the update of an update in place."""
    root = fused.root
    names = root.operands if root.opcode == "tuple" else (root.name,)
    return [shape for name in names for shape in _written_by(fused, _origin(fused, name))]


def shapes_computed(fused: Computation) -> list[Shape]:
    """Return the arrays that a fusion computes, an operation each; of a reduction its operand."""
    found: list[Shape] = []
    for each in fused.instructions.values():
        if each.opcode in MOVES:
            continue
        counted = each
        if each.opcode in ("reduce", "reduce-window"):
            counted = fused.instructions[each.operands[0]]
        elif each.opcode in UPDATES:
            counted = fused.instructions[each.operands[-1 if each.opcode == "scatter" else 1]]
        found += leaves(counted.type)[:1]
    return found


def _really_read(fused: Computation, parameter: Instruction) -> list[Shape]:
    read: list[Shape] = []
    for user, operand in _users(fused, parameter.name):
        if user.opcode in SLICES and user.operands[0] == operand:
            read += leaves(user.type)
        elif user.opcode not in UPDATES or user.operands[0] != operand:
            return list(leaves(parameter.type))
    whole = leaves(parameter.type)
    return read if sum(s.bytes for s in read) < sum(s.bytes for s in whole) else list(whole)


def _users(fused: Computation, name: str) -> Iterator[tuple[Instruction, str]]:
    """Find who reads a value, views passed through, with the operand they read it by."""
    for user in fused.instructions.values():
        if name in user.operands:
            if user.opcode in VIEWS and user.name not in fused.roots:
                yield from _users(fused, user.name)
            else:
                yield user, name


def _origin(fused: Computation, name: str) -> Instruction:
    """Return the instruction behind the views of a result."""
    instruction = fused.instructions[name]
    while instruction.opcode in VIEWS and instruction.operands:
        instruction = fused.instructions[instruction.operands[0]]
    return instruction


def _written_by(fused: Computation, root: Instruction) -> list[Shape]:
    """Return only the update of an update in place; a scatter reads and writes its updates."""
    if root.opcode == "dynamic-update-slice":
        return list(leaves(fused.instructions[root.operands[1]].type))
    if root.opcode == "scatter":
        updates = leaves(fused.instructions[root.operands[-1]].type)
        return [*updates, *updates]
    return list(leaves(root.type))


def windows(fused: Computation) -> dict[str, tuple[int, ...]]:
    """Return window and stride of the pooling with the largest overlap inside a fusion."""
    found: list[tuple[float, dict[str, tuple[int, ...]]]] = []
    for each in fused.instructions.values():
        if each.opcode == "reduce-window":
            size = _sizes(each, "size")
            stride = _sizes(each, "stride") or (1,) * len(size)
            found.append((prod(size) / prod(stride), {"window": size, "stride": stride}))
    return max(found, key=lambda pair: pair[0])[1] if found else {}


def inner_elements(fused: Computation) -> int:
    """Count elements between two that a fusion's reductions add: 1 along rows, else channels.

    XLA's GPU compiler has made the logical order of dimensions the one in memory by then.
    """
    found = [1]
    for each in fused.instructions.values():
        if each.opcode == "reduce":
            axes = [int(axis) for axis in each.group("dimensions").split(",") if axis]
            shape = leaves(fused.instructions[each.operands[0]].type)[0].dims
            found.append(prod(shape[max(axes) + 1 :]) if axes else 1)
    return max(found)


def _is_scan(fused: Computation) -> bool:
    """Return whether a window reaches from each element to its row's start: a cumulative sum."""
    for each in fused.instructions.values():
        if each.opcode == "reduce-window" and not _sizes(each, "stride"):
            pads = re.search(r"pad=([\d_x]+)", each.group("window"))
            low = [int(p.split("_")[0]) for p in pads[1].split("x")] if pads else []
            size = _sizes(each, "size")
            if max(size) > 3 and low == [extent - 1 for extent in size]:
                return True
    return False


def _sizes(instruction: Instruction, key: str) -> tuple[int, ...]:
    match = re.search(rf"{key}=([\dx]+)", instruction.group("window"))
    return tuple(int(size) for size in match[1].split("x")) if match else ()
