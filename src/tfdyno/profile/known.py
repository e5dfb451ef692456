"""What the events of a profile are: operations, with all that is said of them and their class."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.profile.operation_classes import PACKS, Operation, class_of
from tfdyno.profile.programs import Instruction, instructions, module_title
from tfdyno.profile.tables import precision_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tfdyno.profile.lines import Line, Plane, Profile
    from tfdyno.profile.programs import Instructions

    Integers = NDArray[np.int64]

_OPERATION = re.compile(r"^(?P<scope>[^\s:]+):(?P<type>[_A-Z]\w*)$")
"""``scope/name:Type``, as the executor names what it runs."""
_EAGER, _RUN = "EagerLocalExecute: ", re.compile(r"^KernelAndDevice(Func|Op)::Run$")
_FUNCTION = re.compile(r"_*(inference|forward|backward|standard_lib|wrapped)_")
"""Calls of functions: what they do is noted by itself."""
_PROGRAM = re.compile(r"^CpuExecutable::ExecuteAsyncOnStream$|^ThunkExecutor::Execute\b")
_NUMBER = re.compile(r"[._]\d+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One operation of a device, however often it ran."""

    operation: Operation
    operation_class: str
    """One of ``OPERATION_CLASSES``, ``SPECIAL`` or ``EXCHANGE``; ``LAYOUT``."""
    is_compiled: bool = False
    """Whether XLA compiled it."""
    is_float64: bool = False


def with_packing(known: tuple[Known, ...]) -> tuple[Known, ...]:
    """Count what packs tensors for an exchange to the exchange: it stands in the same scope."""
    scopes = {_around(one) for one in known if one.operation_class == "collective"} - {""}
    return tuple(
        replace(one, operation_class="packing")
        if one.operation.type in PACKS and _around(one) in scopes else one
        for one in known
    )  # fmt: skip


def _around(one: Known) -> str:
    return one.operation.scope.rpartition("/")[0]


def fact(line: Line, name: str) -> Integers:
    """Return a fact of all events of a line; -1 where it is not said."""
    column = line.facts.get(name)
    return np.full(line.begin_s.size, -1, np.int64) if column is None else column


def programs_that_ran(profile: Profile) -> Instructions:
    """Read the modules that ran, which are few of those that a process has made."""
    ran = {
        module_title(plane.texts[at])
        for plane in profile.planes
        for line in plane.lines
        for at in np.unique(fact(line, "hlo_module")).tolist()
        if at >= 0
    }
    return instructions(
        (name, data) for name, data in profile.programs if module_title(name) in ran
    )


def kernels(
    plane: Plane, line: Line, chosen: Integers, programs: Instructions
) -> tuple[tuple[Known, ...], Integers]:
    """Return what a GPU ran.

    Returns:
        All operations that differ, and which of them each chosen event is.
    """
    kinds, which = _kinds(plane, line, chosen)
    return tuple(_of_kernel(*each, programs) for each in kinds), which


def host_operations(
    plane: Plane, line: Line, programs: Instructions
) -> tuple[Integers, tuple[Known, ...], Integers]:
    """Tell which events of a host thread are operations, all that differ, and which each is."""
    is_one = np.array([*(_is_operation(name) for name in plane.names), False])
    compiled = (fact(line, "hlo_op") >= 0) & (line.name_index >= 0)
    chosen = np.flatnonzero(is_one[line.name_index] | compiled)
    kinds, which = _kinds(plane, line, chosen)
    known = [_of_host(name, hlo_op, module, programs) for name, _, hlo_op, module in kinds]
    eager = dict(_eager(plane, line))
    which = np.concatenate((which, len(known) + np.arange(len(eager))))
    known += [_known(Operation(type=name, scope=name)) for name in eager.values()]
    return np.concatenate((chosen, np.array([*eager], np.int64))), tuple(known), which


def _is_operation(name: str) -> bool:
    found = _OPERATION.match(name)
    return bool(_PROGRAM.match(name) or (found and not _FUNCTION.match(found["type"])))


def _eager(plane: Plane, line: Line) -> Iterator[tuple[int, str]]:
    """Yield single operations that Python started: where each ran, and its type."""
    is_start = np.array([*(name.startswith(_EAGER) for name in plane.names), False])
    start = np.flatnonzero(is_start[line.name_index])
    if not start.size:
        return
    is_run = np.array([*(bool(_RUN.match(name)) for name in plane.names), False])
    run = np.flatnonzero(is_run[line.name_index])
    place = np.searchsorted(line.begin_s[start], line.begin_s[run], side="right") - 1
    inside = (place >= 0) & (line.end_s[start[place]] > line.begin_s[run])
    for at, begun in zip(run[inside].tolist(), start[place[inside]].tolist(), strict=True):
        name = plane.names[line.name_index[begun]].removeprefix(_EAGER)
        if not _FUNCTION.match(name):
            yield at, name


def _kinds(
    plane: Plane, line: Line, chosen: Integers
) -> tuple[list[tuple[str, str, str, str]], Integers]:
    """Return what is said of events: names, ``tf_op``, ``hlo_op`` and ``hlo_module``.

    Returns:
        All that differ, and which of them each event is.
    """
    said = [fact(line, name)[chosen] for name in ("tf_op", "hlo_op", "hlo_module")]
    code = line.name_index[chosen]
    for column in said:
        if column.size and column.max() >= 0:
            code = np.unique(code * (len(plane.texts) + 1) + column + 1, return_inverse=True)[1]
    _, first, which = np.unique(code, return_index=True, return_inverse=True)
    texts = (*plane.texts, "")
    names = [plane.names[at] for at in line.name_index[chosen][first].tolist()]
    more = ([texts[at] for at in column[first].tolist()] for column in said)
    return list(zip(names, *more, strict=True)), which


def _of_kernel(name: str, tf_op: str, hlo_op: str, module: str, programs: Instructions) -> Known:
    inside = programs.get((module_title(module), hlo_op), Instruction(opcodes=()))
    scope, colon, kind = tf_op.rpartition(":")
    operation = Operation(
        type=(kind if colon else "") or inside.type,
        scope=(scope if colon else kind) or inside.scope,
        hlo=inside.opcodes,
        kernel=name,
    )
    is_float64 = inside.is_float64 or precision_of(name) == "float64"
    return _known(operation, is_compiled=bool(hlo_op), is_float64=is_float64)


def _of_host(name: str, hlo_op: str, module: str, programs: Instructions) -> Known:
    if _PROGRAM.match(name):
        return _known(Operation(type="XlaProgram"), is_compiled=True)
    if not hlo_op:
        found = _OPERATION.match(name)
        scope, kind = found.groups() if found else ("", name)
        return _known(Operation(type=kind, scope=scope))
    # Where its program is not in the profile, the name of an instruction begins with its opcode.
    guess = Instruction(opcodes=(_NUMBER.sub("", hlo_op),))
    inside = programs.get((module_title(module), hlo_op), guess)
    operation = Operation(type=inside.type, scope=inside.scope, hlo=inside.opcodes, kernel=hlo_op)
    return _known(operation, is_compiled=True, is_float64=inside.is_float64)


def _known(operation: Operation, *, is_compiled: bool = False, is_float64: bool = False) -> Known:
    return Known(
        operation=operation,
        operation_class=class_of(operation),
        is_compiled=is_compiled,
        is_float64=is_float64,
    )
