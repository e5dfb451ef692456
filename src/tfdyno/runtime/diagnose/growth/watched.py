"""Memory of a training from step to step, and what grows with it.

Resident memory is read at every step. What is alive is looked at now and then, so seldom that it
takes at most ``COST_RATIO`` of the time. Where memory alone is asked for, what the allocators have
in use is read as well, and what nobody is seen to hold is followed to the line that makes it.
"""

from __future__ import annotations

import contextlib
import math
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import keras

from tfdyno.core.measure.step_facts import GrowthFacts, MemoryCourse
from tfdyno.model.memory.growth import FEWEST_POINTS, STEADY_RATIO, slope
from tfdyno.runtime.base.memory_counters import HOST, MemoryCounters, device_limit_bytes
from tfdyno.runtime.diagnose.growth.found import LEAST_BYTES_PER_STEP, growth
from tfdyno.runtime.diagnose.growth.made import MadeWatch
from tfdyno.runtime.diagnose.growth.suspects import SuspectWatch
from tfdyno.runtime.diagnose.host import memory_free_bytes

if TYPE_CHECKING:
    from tfdyno.core.base.interval import Interval
    from tfdyno.runtime.diagnose.growth.found import Suspect

COST_RATIO = 0.01
ALONE_COST_RATIO = 0.05
"""The share of the time of steps that are looked at for their memory alone."""
MADE_COST_RATIO = 0.5
"""The share of the time in which lines are looked for that make what stays."""
FIRST_LOOK = 3
SURE_RATIO = 0.99
"""Confidence that ends a look before its time: it is asked for again and again."""
NONE_BYTES_PER_STEP = 1024.0
"""Nothing grows where the upper end of the interval is below."""
_OWN_BLOCKS = 5
"""Small objects that the clock and the watch themselves keep of each step."""
_CHECK_S = 1.0
_CHECKS = 3
"""The checks in a row that say the same: what is asked again and again is right once by chance."""
_MADE_S = 12.0
"""So long, at most, lines are looked for that make what stays."""
_MOST_POINTS = 160
"""The most points of a course that is handed over: enough for a drawing."""

CountedBy = Literal["kernel", "allocator"]


@dataclass(slots=True)
class _Series:
    """Sizes by step; plain numbers, so that they are not what grows."""

    steps: array[int] = field(default_factory=lambda: array("q"))
    values: array[int] = field(default_factory=lambda: array("q"))

    def add(self, step: int, value: int) -> None:
        if value >= 0:
            self.steps.append(step)
            self.values.append(value)

    def thinned(self) -> tuple[tuple[int, int], ...]:
        """Return steps and sizes at even distances, the last one among them."""
        last = len(self.steps) - 1
        every = math.ceil(len(self.steps) / _MOST_POINTS)
        places = reversed(range(last, -1, -every))
        return tuple((self.steps[at], self.values[at]) for at in places)

    def slope(self, confidence_ratio: float = 0.95) -> Interval | None:
        return slope(self.steps, self.values, confidence_ratio=confidence_ratio)

    @property
    def is_long_enough(self) -> bool:
        return len(self.steps) * (1 - STEADY_RATIO) >= FEWEST_POINTS


@dataclass(slots=True)
class GrowthWatch:
    """Call ``step`` after each step, and ``facts`` at the end while the script still runs.

    Attributes:
        callbacks: Of ``fit``, if there are any.
        model: That is trained, if it is known.
        is_alone: Whether nothing but memory is looked at: then it may cost more.
    """

    callbacks: Sequence[Any] = ()
    model: Any = None
    is_alone: bool = False
    _steps: int = 0
    _counters: MemoryCounters = field(default_factory=MemoryCounters)
    _resident: _Series = field(default_factory=_Series)
    _allocated: _Series = field(default_factory=_Series)
    _devices: dict[str, _Series] = field(default_factory=dict)
    _watch: SuspectWatch = field(default_factory=SuspectWatch)
    _made: MadeWatch = field(default_factory=MadeWatch)
    _made_from_s: float = 0.0
    _checked_s: float = 0.0
    _sure: int = 0
    """Checks in a row that were."""
    _last_s: dict[str, float] = field(default_factory=dict)
    _costs: dict[str, float] = field(default_factory=dict)

    def start(self) -> None:
        """Begin, with first looks at names: they take longest, and are in no step."""
        self._watch = SuspectWatch(self.callbacks, self.model)
        self._counters.open()
        # On JAX TensorFlow's own account tells nothing of what the steps hold.
        names = () if keras.backend.backend() == "jax" else self._counters.devices
        self._devices = {name: _Series() for name in names}
        for _ in range(2):  # the first one reads files; what the second takes is what they cost
            self._timed("names", lambda: self._watch.look(0))
        self._checked_s = time.perf_counter()

    def stop(self) -> None:
        """End; what was read stays."""
        self._counters.close()
        self._made.stop()

    def step(self) -> None:
        """Read memory after a step, and look at what is alive if that is affordable."""
        self._steps += 1
        if not self._made_from_s:  # afterwards it holds what Python remembers for us
            self._resident.add(self._steps, self._counters.resident_bytes())
            if self.is_alone:
                self._now_and_then("allocated", self._read_allocated)
        for name, series in self._devices.items():
            series.add(self._steps, self._counters.device_bytes(name))
        if self._steps < FIRST_LOOK:
            return
        self._now_and_then("names", lambda: self._watch.look(self._steps))
        # The first count is at once, in the warm-up: before it is what the first steps make once.
        self._now_and_then("counts", lambda: self._watch.count(self._steps))
        if self._made_from_s:
            self._now_and_then("made", lambda: self._made.look(self._steps), MADE_COST_RATIO)

    @property
    def resident_bytes(self) -> int:
        """The resident bytes of the process after the last step; 0: not known."""
        return self._resident.values[-1] if self._resident.values else 0

    @property
    def is_slow(self) -> bool:
        """Whether lines are looked for that make what stays."""
        return self._made_from_s > 0

    def is_sure(self) -> bool:
        """Return whether more steps would change nothing: asked after each, thought over rarely."""
        now = time.perf_counter()
        if self._sure >= _CHECKS or now - self._checked_s < _CHECK_S:
            return self._sure >= _CHECKS
        told = self._host().slope(SURE_RATIO)
        self._sure = self._sure + 1 if told and self._settled(told, now) else 0
        self._checked_s = time.perf_counter()
        return self._sure >= _CHECKS

    def facts(self) -> tuple[GrowthFacts, ...]:
        """Return what grows, on the host and on devices."""
        if self._steps <= FIRST_LOOK:
            return ()
        suspects = self._suspects()
        host = self._host()
        is_counted = host is self._allocated
        found = [growth("host", host.slope(), suspects, is_counted=is_counted)]
        if is_counted and not found[0]:  # what no allocator counts is seen in the pages alone
            found = [growth("host", self._resident.slope(), suspects)]
        cards = (one for name, one in self._devices.items() if name != HOST)
        found += [growth("device", one.slope(), suspects) for one in cards]
        return tuple(one for one in found if one)

    def memory(self) -> tuple[MemoryCourse, ...]:
        """Say how memory moved, whether it grows or not; what was read too seldom is left out."""
        free = memory_free_bytes(Path("/"))
        rows: list[tuple[str, CountedBy, _Series, int]] = [
            ("host", "allocator", self._allocated, free), ("host", "kernel", self._resident, free),
        ]  # fmt: skip
        for name, series in self._devices.items():
            limit = 0 if name == HOST else device_limit_bytes(name)
            left = limit - (series.values[-1] if series.values else 0)
            rows.append((name, "allocator", series, max(0, left)))
        return tuple(found for row in rows if (found := _course(*row)))

    def _settled(self, told: Interval, now: float) -> bool:
        """Return whether the slope tells enough, and what grows has a line or none can be found."""
        if told.low < LEAST_BYTES_PER_STEP:
            return told.low <= 0 and told.high <= NONE_BYTES_PER_STEP and not self._made_from_s
        if told.low < told.best / 2:
            return False
        if self._made_from_s:
            return self._made.is_enough or now - self._made_from_s >= _MADE_S
        with contextlib.suppress(Exception):  # the user's objects may be of any kind
            if any(".py:" in one.words for one in self._suspects()):
                return True
        self._made_from_s = now
        self._made.start()
        return False

    def _suspects(self) -> list[Suspect]:
        """Return those by name; where one is missing, lines that make what stays."""
        if self._made.is_on:
            self._made.look(self._steps)
            self._made.stop()  # what follows would take many times as long
            self._watch.made_at = next((one.place for one in self._made.lines()), "")
        with contextlib.suppress(Exception):  # the user's objects may be of any kind
            self._watch.look(self._steps)
            self._watch.count(self._steps)
        return self._watch.found() or self._made.suspects()

    def _host(self) -> _Series:
        """Return what the allocators have in use, where there is enough of that."""
        return self._allocated if self._allocated.is_long_enough else self._resident

    def _read_allocated(self) -> None:
        own = self._steps * _OWN_BLOCKS
        self._allocated.add(self._steps, self._counters.allocated_bytes(own))

    def _now_and_then(self, name: str, look: Callable[[], None], ratio: float = 0.0) -> None:
        """Look, if the last one is so long ago that this one costs little."""
        ratio = ratio or (ALONE_COST_RATIO if self.is_alone else COST_RATIO)
        past_s = time.perf_counter() - self._last_s.get(name, 0.0)
        if past_s >= self._costs.get(name, 0.0) / ratio:
            self._timed(name, look)

    def _timed(self, name: str, look: Callable[[], None]) -> None:
        began = time.perf_counter()
        with contextlib.suppress(Exception):  # the user's objects may be of any kind
            look()
        self._last_s[name] = time.perf_counter()
        self._costs[name] = self._last_s[name] - began


def _course(
    where: str, counted_by: CountedBy, series: _Series, free_bytes: int
) -> MemoryCourse | None:
    told = series.slope()
    if told is None:
        return None
    first = int(len(series.steps) * STEADY_RATIO)
    return MemoryCourse(
        where=where,
        counted_by=counted_by,
        steps=series.steps[-1] - series.steps[first] + 1,
        low_bytes_per_step=told.low,
        bytes_per_step=told.best,
        high_bytes_per_step=told.high,
        end_bytes=series.values[-1],
        free_bytes=free_bytes,
        course_bytes=series.thinned(),
    )
