"""Memory of a training from step to step, and which of the user's names grow with it.

Resident memory is read at every step. What is alive is counted now and then, so seldom that it
takes at most ``COST_RATIO`` of the time.
"""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import tensorflow as tf

from tfdyno.model.growth import slope
from tfdyno.runtime.growth_found import Kind, Suspect, growth, rising
from tfdyno.runtime.own_objects import (
    TENSOR_BYTES,
    deep_bytes,
    element_bytes,
    grown_at,
    held,
    kind_of,
    roots,
)

if TYPE_CHECKING:
    from tfdyno.core.step_facts import GrowthFacts

COST_RATIO = 0.01
FIRST_LOOK = 3
_NOISE: Mapping[Kind, int] = {"tensors": 64, "functions": 16, "iterators": 4}
"""So many more are nothing: what one step holds for a moment, and what first traces make."""
_LEAST_PER_STEP = 0.2
_MOST_LOOKS = 40
_FUNCTION_TYPES = ("Function", "ConcreteFunction")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    step: int
    sizes: Mapping[tuple[str, str], tuple[int, bool]]
    """By name and file; whether they are bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Count:
    """Live objects of TensorFlow's."""

    step: int
    tensors: int = 0
    tensor_bytes: int = 0
    functions: int = 0
    iterators: int = 0


@dataclass(slots=True)
class GrowthWatch:
    """Call ``step`` after each step, and ``facts`` at the end while the script still runs.

    Attributes:
        callbacks: Of ``fit``, if there are any.
        model: That is trained, if it is known.
        cost_s: Seconds that the looks took so far.
    """

    callbacks: Sequence[Any] = ()
    model: Any = None
    cost_s: float = 0.0
    _steps: int = 0
    _memory: list[int] = field(default_factory=list)
    _device: list[int] = field(default_factory=list)
    _looks: list[_Look] = field(default_factory=list)
    _counts: list[_Count] = field(default_factory=list)
    _file: int = -1
    _page: int = 4096
    _has_gpu: bool = False
    _last_s: dict[str, float] = field(default_factory=dict)
    _costs: dict[str, float] = field(default_factory=dict)

    def start(self) -> None:
        """Begin, with a first count of what is alive: that takes longest, and is in no step."""
        with contextlib.suppress(OSError):
            self._file = os.open("/proc/self/statm", os.O_RDONLY)
            self._page = os.sysconf("SC_PAGESIZE")
        self._has_gpu = bool(tf.config.list_logical_devices("GPU"))
        began = time.perf_counter()
        self._count()
        self._last_s["counts"] = time.perf_counter()
        self._costs["counts"] = time.perf_counter() - began

    def stop(self) -> None:
        """End; what was read stays."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def step(self) -> None:
        """After a step: read memory, and look at what is alive if that is affordable."""
        self._steps += 1
        if self._file >= 0:
            self._memory.append(int(os.pread(self._file, 64, 0).split()[1]) * self._page)
        if self._has_gpu:
            info = tf.config.experimental.get_memory_info("GPU:0")
            self._device.append(int(info["current"]))
        if self._steps < FIRST_LOOK:
            return
        now = time.perf_counter()
        for name, look in (("names", self._look), ("counts", self._count)):
            cost_s = self._costs.get(name, 0.0)
            if now - self._last_s.get(name, 0.0) >= cost_s / COST_RATIO and self._more():
                with contextlib.suppress(Exception):  # the user's objects may be of any kind
                    look()
                self._costs[name] = time.perf_counter() - now
                self.cost_s += self._costs[name]
                now = self._last_s[name] = time.perf_counter()

    def facts(self) -> tuple[GrowthFacts, ...]:
        """What grows, on the host and on the first GPU."""
        if self._steps <= FIRST_LOOK:
            return ()
        suspects = self._suspects()
        found = []
        places: tuple[tuple[Literal["host", "device"], list[int]], ...] = (
            ("host", self._memory), ("device", self._device),
        )  # fmt: skip
        for where, values in places:
            told = growth(where, slope(range(len(values)), values), suspects)
            if told and (where == "host" or self._device):
                found.append(told)
        return tuple(found)

    def _more(self) -> bool:
        return len(self._looks) < _MOST_LOOKS

    def _look(self) -> None:
        sizes = {
            (one.name, one.file): (one.size, one.is_bytes)
            for one in held(roots(self.callbacks, self.model))
        }
        self._looks.append(_Look(step=self._steps, sizes=sizes))

    def _count(self) -> None:
        tensors = size = functions = iterators = 0
        tensor_type, iterator_type = type(tf.constant(0)), tf.data.Iterator
        for one in gc.get_objects():
            kind = type(one)
            if kind is tensor_type:
                tensors += 1
                size += _known_bytes(one)
            elif kind.__name__ in _FUNCTION_TYPES and kind.__module__.startswith("tensorflow"):
                functions += 1
            elif kind.__name__.endswith("Iterator") and issubclass(kind, iterator_type):
                iterators += 1
        self._counts.append(
            _Count(step=self._steps, tensors=tensors, tensor_bytes=size, functions=functions,
                   iterators=iterators)
        )  # fmt: skip

    def _suspects(self) -> list[Suspect]:
        current = {(one.name, one.file): one for one in held(roots(self.callbacks, self.model))}
        if self._looks and self._looks[-1].step < self._steps:
            self._look()
        if self._counts and self._counts[-1].step < self._steps:
            self._count()
        found = []
        for key, one in current.items():
            series = [(look.step, look.sizes[key][0]) for look in self._looks if key in look.sizes]
            low, best = rising(series)
            each = 1.0 if one.is_bytes else 0.0
            if low <= 0 or (not one.is_bytes and best < _LEAST_PER_STEP):
                continue
            each = each or element_bytes(one.value)
            kind = kind_of(one.value)
            place = grown_at(one)
            holder = f"held by {place} ({one.name})" if place else f"held as {one.name}"
            words = f"{_title(one.value, kind)} {holder}"
            found.append(
                Suspect(words=words, kind=kind, bytes_per_step=best * each,  # type: ignore[arg-type]
                        low_bytes_per_step=low * each)
            )  # fmt: skip
        found.sort(key=lambda one: -one.bytes_per_step)
        return _without_holders(found) + self._uncounted(found)

    def _uncounted(self, named: Sequence[Suspect]) -> list[Suspect]:
        """Live objects that become more though no name of the user's was seen to hold them."""
        found = []
        kinds: tuple[tuple[Kind, str, str], ...] = (
            ("tensors", "tensors", "tensors"),
            ("functions", "functions", "tf.functions"),
            ("iterators", "iterators", "iterators of datasets"),
        )
        for kind, attribute, title in kinds:
            series = [(one.step, getattr(one, attribute)) for one in self._counts]
            low, best = rising(series, noise=_NOISE[kind])
            if low <= 0 or best < _LEAST_PER_STEP or any(one.kind == kind for one in named):
                continue
            each = 0.0
            if kind == "tensors":
                more = self._counts[-1].tensor_bytes - self._counts[0].tensor_bytes
                each = TENSOR_BYTES + max(0.0, more) / max(1, series[-1][1] - series[0][1])
            words = f"{series[-1][1]:,} live {title}, {best:.1f} more with each step"
            found.append(
                Suspect(words=words, kind=kind, bytes_per_step=best * each,
                        low_bytes_per_step=low * each)
            )  # fmt: skip
        return found


def _without_holders(found: list[Suspect]) -> list[Suspect]:
    """One line for each place: a list within a grown dict is told once."""
    return list({one.words: one for one in reversed(found)}.values())[::-1]


def _title(value: Any, kind: str) -> str:  # noqa: ANN401
    name = type(value).__name__
    if isinstance(value, list | dict | set) or hasattr(value, "appendleft"):
        nouns = {"functions": "tf.functions", "logs": "entries"}
        return f"{name} of {len(value):,} {nouns.get(kind, kind)}"
    return f"{name} of {deep_bytes(value) / 1e6:,.1f} MB"


def _known_bytes(tensor: Any) -> int:  # noqa: ANN401
    try:
        return int(tensor.dtype.size or 0) * int(tensor.shape.num_elements() or 0)
    except (AttributeError, TypeError, ValueError):
        return 0
