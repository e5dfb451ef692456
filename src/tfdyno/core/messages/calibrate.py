"""The child that sweeps the card of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tfdyno.core.choose.generation import Framework
from tfdyno.core.choose.program import Kernel
from tfdyno.core.messages.child import Child

Where = Literal["cpu", "gpu"]
Execution = Literal["xla", "graph"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks:
    """What the data sheet of a card says; 0 and empty: it is not known."""

    flops_per_s: Mapping[str, float] = field(default_factory=dict)
    """By type."""
    bytes_per_s: float = 0.0
    room_bytes: float = 0.0
    """For the results of a chain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepCard:
    """Time kernels of every kind until the time is spent."""

    framework: Framework
    where: Where
    executions: tuple[Execution, ...]
    seconds_s: float
    """From when the framework is ready."""
    fewest: int = 0
    """Kernels that are timed once, however long it takes."""
    file: Path
    """To which every window is added at once."""
    smallest: bool = False
    """The smallest kernel alone."""
    most_rounds: int = 200
    """More windows of a kernel tell nothing that these do not."""
    peaks: Peaks = field(default_factory=Peaks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The first line of the file."""

    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PaceTold:
    """What is no kernel: a field of ``Pace``."""

    pace: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """What the windows of a name are of."""

    name: str
    execution: Execution
    count: int
    """Kernels of a call; 0: a call of none."""
    kernel: Kernel | None = None
    tf32: bool = False
    less: str = ""
    """What runs beside it, by its name."""
    overlaps: bool = False
    """Whether the host makes the next call while the card works."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One call, timed."""

    name: str
    call_s: float
    used_s: float = 0.0
    """Of all processors; 0.0: not told."""


Line = Release | PaceTold | Chain | Window
LINES: dict[str, type[Line]] = {
    "version": Release,
    "pace": PaceTold,
    "count": Chain,
    "call_s": Window,
}
"""By a field that no other line has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardSwept:
    """What a sweep tells beside its windows; one that ended early tells nothing."""

    version: str = ""
    """Of the framework."""
    device: str = ""
    """What the framework calls the card."""
    rounds: int = 0
    left_out: tuple[str, ...] = ()
    """What there was no time for."""
    failed: dict[str, str] = field(default_factory=dict)
    """Why a kernel was not timed."""


SWEEP = Child(module="tfdyno.runtime.calibrate.sweep", request=SweepCard, result=CardSwept)
