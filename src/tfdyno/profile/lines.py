"""A profile as columns of numbers: planes (a device, the host) of lines (a stream, a thread)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

WANTED = ("step_num", "correlation_id", "memcpy_details", "tf_op", "hlo_op", "hlo_module")
"""What is said of an event that is read; all else is passed over."""
TEXTS = frozenset({"memcpy_details", "tf_op", "hlo_op", "hlo_module"})
"""Those of them that are texts; the others are whole numbers."""


class ProfileError(ValueError):
    """The bytes are no profile; says what is wrong with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What one stream or thread did, in order of beginning."""

    name: str
    begin_s: NDArray[np.float64]
    """The time since the first event of the profile."""
    end_s: NDArray[np.float64]
    name_index: NDArray[np.int64]
    """Into the plane's names."""
    facts: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    """Numbers said of events by name (``WANTED``); -1: not said. Texts are places in the plane's
    ``texts``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plane:
    """A device or the host."""

    name: str
    names: tuple[str, ...]
    """The names of events; each as often as the profile repeats it."""
    lines: tuple[Line, ...]
    texts: tuple[str, ...] = ()
    """Values of facts that are texts."""
    said: dict[str, int] = field(default_factory=dict)
    """Whole numbers said of the plane itself by name: ``compute_cap_major``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One host's profile."""

    planes: tuple[Plane, ...]
    notes: tuple[str, ...] = ()
    """What the profiler itself said was lost."""
    programs: tuple[tuple[str, memoryview], ...] = ()
    """The programs of XLA: titles of modules, and the bytes of each ``HloProto``."""

    @property
    def event_count(self) -> int:
        """The number of events over all planes."""
        return sum(line.begin_s.size for plane in self.planes for line in plane.lines)
