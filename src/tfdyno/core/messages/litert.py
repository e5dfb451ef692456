"""Children that make a .tflite file, and that read, plan and time one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tfdyno.core.deploy.edge import EdgeTiming
from tfdyno.core.deploy.litert_graph import LitertGraph
from tfdyno.core.messages.child import Child, Nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeLitert:
    """Convert a model to floats."""

    reference: str
    """A .keras file or ``file.py:function``."""
    target: Path
    unsafe: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLitert:
    """Read a file, and time it."""

    model: Path
    threads: tuple[int, ...]
    """Empty: it is not timed."""
    turn_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LitertRead:
    """What a file holds, and its time on this CPU."""

    graph: LitertGraph
    layers: tuple[str, ...]
    """Of each operator of the main subgraph."""
    float_operators: tuple[str, ...]
    arena_bytes: int
    """LiteRT's memory for it."""
    timings: tuple[EdgeTiming, ...]


MAKE_LITERT = Child(module="tfdyno.runtime.litert.make", request=MakeLitert, result=Nothing)
READ_LITERT = Child(module="tfdyno.runtime.litert.child", request=ReadLitert, result=LitertRead)
