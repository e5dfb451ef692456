"""Put a model on small devices: what it needs, where it fits, how long it takes."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.catalog.edge_devices import operations
from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.edge import EdgeDevice, EdgePort, EdgeReport, EdgeVerdict
from tfdyno.core.messages.litert import (
    MAKE_LITERT,
    READ_LITERT,
    LitertRead,
    MakeLitert,
    ReadLitert,
)
from tfdyno.jobs.child.worker import ChildCrash, Progress, run_child, silent
from tfdyno.jobs.deploy._export_source import stored_model
from tfdyno.model.edge.fit import verdict
from tfdyno.model.edge.need import need_of
from tfdyno.probe.base import processors
from tfdyno.probe.base.host import this_host

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfdyno.core.deploy.edge import EdgeNeed
    from tfdyno.core.deploy.litert_graph import LitertGraph, LitertPort

CONVERT_S, LOOK_S = 3600.0, 1800.0
_HAS_ALL = ("litert", "tensorrt")
"""Runtimes that have every operator of a file that LiteRT itself runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeRequest:
    """What is asked of a model."""

    model: str
    """A .tflite file, a .keras file, ``file.py:function`` or ``NAME[:V]`` of the model store."""
    devices: tuple[EdgeDevice, ...]
    threads: tuple[int, ...] = (1, 2)
    """The threads to measure with on this CPU; empty: nothing is measured."""
    seconds: float = 0.3
    """The time of each turn."""
    write: Path | None = None
    """Folder for the model and its instructions; it must not be there."""
    unsafe: bool = False


def edge(request: EdgeRequest, *, progress: Progress = silent) -> EdgeReport:
    """Judge a model on devices, time it here, and write what a developer needs.

    Raises:
        UsageError: The model is missing, damaged or cannot be converted, or the folder is there.
        ToolError: The converter or LiteRT crashed.
    """
    typed, request = request, _with_path(request)
    _check(request)
    with _as_file(request, progress) as path:
        found = _look(path, request, progress)
        report = _report(request, path, found)
        if typed is not request:
            report = replace(report, model=typed.model)
        if request.write:
            from tfdyno.jobs.deploy.edge_write import write

            progress(f"writing {request.write}")
            write(request.write, path, report)
    return report


def _with_path(request: EdgeRequest) -> EdgeRequest:
    """Return the same with the file of a version where the model store has one by that name."""
    if Path(request.model).exists() or ".py:" in request.model:
        return request
    found = stored_model(request.model, ("litert", "keras"))
    return replace(request, model=str(found.path)) if found else request


def _check(request: EdgeRequest) -> None:
    reference = request.model
    is_function = ".py:" in reference
    path = Path(reference.partition(".py:")[0] + ".py" if is_function else reference)
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise UsageError(
            f"{path} {what}",
            remedy="name a .tflite file, a .keras file, file.py:function or NAME[:V] of the model "
            "store",
        )
    if not is_function and path.suffix not in {".tflite", ".keras"}:
        raise UsageError(
            f"{path} is neither a .tflite nor a .keras file",
            remedy="convert it with tfdyno export --to litert",
        )
    if request.write and request.write.exists():
        raise UsageError(f"{request.write} exists already", remedy="name a new folder")


@contextlib.contextmanager
def _as_file(request: EdgeRequest, progress: Progress) -> Iterator[Path]:
    """Give the model as a .tflite file; what had to be converted is gone afterwards."""
    if request.model.endswith(".tflite"):
        yield Path(request.model)
        return
    with tempfile.TemporaryDirectory(prefix="tfdyno-edge-") as folder:
        target = Path(folder) / "model.tflite"
        run_child(
            MAKE_LITERT,
            MakeLitert(reference=request.model, target=target, unsafe=request.unsafe),
            progress=progress,
            timeout_s=CONVERT_S,
            doing=f"converting {request.model}",
            env={"KERAS_BACKEND": "tensorflow"},
        )
        yield target


def _look(path: Path, request: EdgeRequest, progress: Progress) -> LitertRead:
    try:
        return run_child(
            READ_LITERT,
            ReadLitert(model=path, threads=request.threads, turn_s=request.seconds),
            progress=progress,
            timeout_s=LOOK_S,
            doing=f"running {request.model}",
        )
    except ChildCrash as crash:
        if crash.child_exit_code is not None and crash.child_exit_code >= 0:
            raise
        # LiteRT trusts what a file says of itself; a damaged one can take the process with it.
        raise UsageError(
            f"LiteRT crashes on {request.model}",
            why=crash.why,
            remedy="the file may be damaged: export it again",
        ) from None


def _report(request: EdgeRequest, path: Path, found: LitertRead) -> EdgeReport:
    graph = found.graph
    need = need_of(graph, found.layers, arena_bytes=found.arena_bytes)
    half = any(t.constant and t.dtype == "float16" for t in graph.main.tensors)
    return EdgeReport(
        model=request.model,
        converted_from="" if path == Path(request.model) else request.model,
        need=need,
        inputs=_ports(graph, graph.inputs),
        outputs=_ports(graph, graph.outputs),
        signature=graph.signature,
        float_operators=found.float_operators,
        timings=found.timings,
        cpu=processors.name(this_host()),
        verdicts=tuple(_verdict(need, device, half) for device in request.devices),
    )


def _verdict(need: EdgeNeed, device: EdgeDevice, half: bool) -> EdgeVerdict:
    runtime = device.runtime.slug
    known = None if runtime in _HAS_ALL else operations(runtime)
    return verdict(need, device, operations=known, half=half)


def _ports(graph: LitertGraph, ports: Sequence[LitertPort]) -> tuple[EdgePort, ...]:
    return tuple(
        EdgePort(
            name=port.name,
            index=index,
            dtype=graph.tensor(port).dtype,
            shape=graph.tensor(port).shape,
            open_axes=graph.tensor(port).open_axes,
            scale=graph.tensor(port).scale,
            zero_point=graph.tensor(port).zero_point,
        )
        for index, port in enumerate(ports)
    )
