"""The operations in a profile that TensorFlow wrote: when each ran, on what, and what it was.

On a GPU they are the kernels and copies of its streams. Without one they are what TensorFlow's
executor, eager calls and XLA's programs note on the threads of the host.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tfdyno.runtime.operation_classes import Operation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HOST = "/host:CPU"
_DEVICE = re.compile(r"/device:GPU:\d+")
_SPACES = ("tensorflow.tsl.profiler.protobuf", "tensorflow.core.profiler.protobuf")
"""Where ``xplane_pb2`` is, since 2.12 and before."""
_DERIVED = re.compile(r"(?i)^(steps|xla modules|xla ops|xla traceme|tensorflow|source|framework)")
"""Lines that viewers add to a device's plane: the same time again."""
_FUNCTION = re.compile(r"^_*(inference|forward|backward|standard_lib|wrapped)_|^StatefulPart|^Part")
"""Calls of functions: what they do is noted by itself."""
_WAITS = re.compile(r"^(IteratorGetNext\w*|_?(Host)?Recv|Barrier|Assert|NoOp|_Arg|_Retval)$")
"""They take time without any work in them."""
_EAGER, _RUN = "EagerLocalExecute: ", re.compile(r"KernelAndDevice(Func|Op)::Run")
_DOUBLE = re.compile(r"(?i)double|dgemm|d884|f64|fp64")
_FLOAT64 = {12, 18}
"""``F64`` and ``C128`` of ``xla_data.proto``."""
_SIZE = re.compile(r"size:(\d+)")
_BETWEEN = re.compile(r"(?i)memcpy\s*(HtoD|DtoH|PtoP|H2D|D2H|P2P)")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpEvent:
    """One operation that ran once."""

    line: int
    """Thread or stream."""
    begin_s: float
    end_s: float
    name: str
    operation: Operation
    is_float64: bool = False
    is_copy: bool = False
    """Between devices, or a device and the host."""
    copied_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileEvents:
    """All operations of a profile by device, and the steps that were marked in it."""

    devices: dict[str, tuple[OpEvent, ...]]
    """GPUs by the names of their planes; none on a machine without."""
    host: tuple[OpEvent, ...]
    steps_s: tuple[tuple[float, float], ...]
    """Begin and end of each marked step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hlo:
    opcodes: tuple[str, ...]
    type: str
    scope: str
    is_float64: bool


def space_type() -> Any:  # noqa: ANN401
    """The message ``XSpace`` of this TensorFlow.

    Raises:
        ImportError: It has none.
    """
    for place in _SPACES:
        try:
            return import_module(f"{place}.xplane_pb2").XSpace
        except ImportError:
            continue
    raise ImportError("this TensorFlow has no xplane_pb2")


def events_of(space: Any, float64_names: frozenset[str] = frozenset()) -> ProfileEvents:  # noqa: ANN401
    """Read a profile.

    Args:
        space: An ``XSpace`` message.
        float64_names: Operations of graphs that give 64-bit floats; the profile does not say it.
    """
    programs = _programs(space)
    devices: dict[str, tuple[OpEvent, ...]] = {}
    host: list[OpEvent] = []
    steps: list[tuple[float, float]] = []
    for plane in space.planes:
        if _DEVICE.search(plane.name):
            devices[plane.name] = tuple(_of_device(plane, programs))
        elif plane.name == HOST:
            host += _of_host(plane, programs, float64_names)
            steps += _steps(plane)
    return ProfileEvents(devices=devices, host=tuple(host), steps_s=tuple(sorted(steps)))


def _steps(plane: Any) -> Iterator[tuple[float, float]]:  # noqa: ANN401
    for line in plane.lines:
        for event in line.events:
            if any(
                plane.stat_metadata[stat.metadata_id].name == "step_num" for stat in event.stats
            ):
                yield _times(line, event)


def _of_host(
    plane: Any, programs: Mapping[tuple[str, str], _Hlo], float64_names: frozenset[str]  # noqa: ANN401
) -> Iterator[OpEvent]:  # fmt: skip
    kinds = _names(plane)
    for number, line in enumerate(plane.lines):
        eager, until = "", 0.0
        for event in sorted(line.events, key=lambda one: (one.offset_ps, -one.duration_ps)):
            name, shown = kinds[event.metadata_id]
            begin, end = _times(line, event)
            if name.startswith(_EAGER):
                eager, until = name.removeprefix(_EAGER), end
                continue
            if _RUN.fullmatch(name):
                if begin < until and not _FUNCTION.match(eager):
                    name, shown = eager, eager
                else:
                    continue
            stats = _stats(plane, event)
            if "hlo_op" in stats:
                found = programs.get((_module(stats), str(stats["hlo_op"])))
                yield _of_program(number, (begin, end), str(stats["hlo_op"]), found)
            elif shown and not _FUNCTION.match(shown) and not _WAITS.match(shown):
                scope = name.rpartition(":")[0] or name
                yield OpEvent(
                    line=number, begin_s=begin, end_s=end, name=scope,
                    operation=Operation(type=shown, scope=scope),
                    is_float64=scope in float64_names,
                )  # fmt: skip


def _of_device(plane: Any, programs: Mapping[tuple[str, str], _Hlo]) -> Iterator[OpEvent]:  # noqa: ANN401
    kinds = _names(plane)
    for number, line in enumerate(plane.lines):
        if _DERIVED.match(line.name or line.display_name):
            continue
        for event in line.events:
            kernel, _ = kinds[event.metadata_id]
            stats, times = _stats(plane, event), _times(line, event)
            hlo = programs.get((_module(stats), str(stats.get("hlo_op", ""))))
            path, _, op_type = str(stats.get("tf_op", "")).rpartition(":")
            details = _SIZE.search(str(stats.get("memcpy_details", "")))
            yield OpEvent(
                line=number, begin_s=times[0], end_s=times[1],
                name=path or str(stats.get("hlo_op", "")) or kernel,
                operation=Operation(
                    type=op_type or (hlo.type if hlo else ""),
                    scope=path or (hlo.scope if hlo else ""),
                    hlo=hlo.opcodes if hlo else (),
                    kernel=kernel,
                ),
                is_float64=bool(_DOUBLE.search(kernel)) or (hlo is not None and hlo.is_float64),
                is_copy=bool(_BETWEEN.search(kernel)),
                copied_bytes=int(details[1]) if details and _BETWEEN.search(kernel) else 0,
            )  # fmt: skip


def _of_program(line: int, times: tuple[float, float], name: str, hlo: _Hlo | None) -> OpEvent:
    if hlo is None:  # its program is not in the profile: the name begins with the opcode
        guess = re.sub(r"[._]\d+$", "", name)
        hlo = _Hlo(opcodes=(guess,), type="", scope="", is_float64=False)
    return OpEvent(
        line=line, begin_s=times[0], end_s=times[1], name=hlo.scope or name,
        operation=Operation(type=hlo.type, scope=hlo.scope, hlo=hlo.opcodes),
        is_float64=hlo.is_float64,
    )  # fmt: skip


def _programs(space: Any) -> dict[tuple[str, str], _Hlo]:  # noqa: ANN401
    """Instructions of XLA's programs by module and name, where the profile holds the programs."""
    try:
        message = import_module("tensorflow.compiler.xla.service.hlo_pb2").HloProto
    except ImportError:
        return {}
    found: dict[tuple[str, str], _Hlo] = {}
    for plane in space.planes:
        if plane.name != "/host:metadata":
            continue
        for kind in plane.event_metadata.values():
            for stat in kind.stats:
                if stat.bytes_value:
                    module = message.FromString(stat.bytes_value).hlo_module
                    title = re.sub(r"\(\d+\)$", "", kind.name)
                    found.update(_instructions(title, module))
    return found


def _instructions(title: str, module: Any) -> Iterator[tuple[tuple[str, str], _Hlo]]:  # noqa: ANN401
    inside = {one.id: one.instructions for one in module.computations}
    for computation in module.computations:
        for one in computation.instructions:
            parts = [each for key in one.called_computation_ids for each in inside.get(key, ())]
            every = [one, *parts] if one.opcode == "fusion" else [one]
            yield (
                (title, one.name),
                _Hlo(
                    opcodes=tuple(dict.fromkeys(map(_opcode, every))),
                    type=one.metadata.op_type,
                    scope=one.metadata.op_name,
                    is_float64=any(each.shape.element_type in _FLOAT64 for each in every),
                ),
            )


def _opcode(instruction: Any) -> str:  # noqa: ANN401
    if instruction.opcode == "custom-call":
        return f"custom-call:{instruction.custom_call_target}"
    return str(instruction.opcode)


def _names(plane: Any) -> dict[int, tuple[str, str]]:  # noqa: ANN401
    return {key: (one.name, one.display_name) for key, one in plane.event_metadata.items()}


def _module(stats: Mapping[str, Any]) -> str:
    return re.sub(r"\(\d+\)$", "", str(stats.get("hlo_module", "")))


def _stats(plane: Any, event: Any) -> dict[str, Any]:  # noqa: ANN401
    found: dict[str, Any] = {}
    for stat in event.stats:
        kind = stat.WhichOneof("value")
        value = getattr(stat, kind) if kind else ""
        if kind == "ref_value":
            value = plane.stat_metadata[value].name
        found[plane.stat_metadata[stat.metadata_id].name] = value
    return found


def _times(line: Any, event: Any) -> tuple[float, float]:  # noqa: ANN401
    begin_s = line.timestamp_ns / 1e9 + event.offset_ps / 1e12
    return begin_s, begin_s + event.duration_ps / 1e12
