"""Where objects are made that stay, for growth that no name of the user's is seen to hold.

Python tells of each object where it was made, if it is asked to remember. That slows it down, so
that it is asked only when memory grows and nothing says why. What was made before is not known.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.process.own_lines import own_file, place_of
from tfdyno.runtime.diagnose.growth.found import Suspect, rising

if TYPE_CHECKING:
    from collections.abc import Iterable

_FRAMES = 16
"""Kept of each call: the user's line lies some calls above that of a package. More make Python
slower, by a factor of 6 with 40 of them."""
_OWN_FOLDER = str(Path(__file__).parents[3])
_FEWEST_LOOKS = 4
_NOISE_OBJECTS = 16
_LEAST_PER_STEP = 0.05
_MOST_LINES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    step: int
    objects: Mapping[str, int]
    """The objects by the user's line."""
    sizes: Mapping[str, int]
    """Bytes of Python's, and of numpy's arrays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of the user's whose objects become more."""

    place: str
    """``train.py:31``."""
    per_step: float
    bytes_per_step: float
    low_bytes_per_step: float


@dataclass(slots=True)
class MadeWatch:
    """Call ``start`` once, ``look`` now and then, and ``stop`` in the end."""

    is_on: bool = False
    """Whether it remembers where objects are made."""
    _looks: list[_Look] = field(default_factory=list)
    _is_own: bool = False

    @property
    def is_enough(self) -> bool:
        """Whether there were looks enough to tell what rises."""
        return len(self._looks) > _FEWEST_LOOKS + 1

    def start(self) -> None:
        """Remember from now on; a script may do so already."""
        self.is_on, self._is_own = True, not tracemalloc.is_tracing()
        if self._is_own:
            tracemalloc.start(_FRAMES)

    def stop(self) -> None:
        """Forget it all, unless the script wants it."""
        if self.is_on and self._is_own:
            tracemalloc.stop()
        self.is_on = False

    def look(self, step: int) -> None:
        """Count the objects that are alive and were made since the start, by the user's line."""
        objects: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        gc.collect()
        for found in tracemalloc.take_snapshot().statistics("traceback"):
            if place := _own_place(found.traceback):
                objects[place] += found.count
                sizes[place] += found.size
        if not self._looks or self._looks[-1].step < step:
            self._looks.append(_Look(step=step, objects=objects, sizes=sizes))

    def suspects(self) -> list[Suspect]:
        """List lines whose objects become more with the steps, most bytes first."""
        return [
            Suspect(
                words=f"objects made at {one.place} and kept by something, {one.per_step:.1f} more "
                "with each step",
                kind="objects", bytes_per_step=one.bytes_per_step,
                low_bytes_per_step=one.low_bytes_per_step,
            )
            for one in self.lines()[:_MOST_LINES]
        ]  # fmt: skip

    def lines(self) -> list[Line]:
        """Return the same, as they are."""
        looks = self._looks[1:]  # at the first one the objects of a single step stand for many
        if len(looks) < _FEWEST_LOOKS:
            return []
        found = []
        for place in looks[-1].objects:
            low, best = rising([(one.step, one.objects.get(place, 0)) for one in looks],
                               noise=_NOISE_OBJECTS)  # fmt: skip
            least, size = rising([(one.step, one.sizes.get(place, 0)) for one in looks])
            if low <= 0 or best < _LEAST_PER_STEP:
                continue
            found.append(
                Line(place=place, per_step=best, bytes_per_step=size, low_bytes_per_step=least)
            )
        return sorted(found, key=lambda one: -one.bytes_per_step)


def _own_place(traceback: Iterable[Any]) -> str:
    """Return ``train.py:31``, the user's innermost line; empty: none, or made by the look itself.

    The look runs within the user's lines, so that what it notes of each step seems to be theirs.
    """
    latest_first = list(traceback)[::-1]
    if latest_first and latest_first[0].filename.startswith(_OWN_FOLDER):
        return ""
    for frame in latest_first:
        if own_file(frame.filename):
            return place_of(frame.filename, frame.lineno)
    return ""
