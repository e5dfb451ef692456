"""Which of the user's names grow with the steps, and which of TensorFlow's objects become more.

What is alive is looked at now and then. All that is told of a name is kept in words, so that it can
still be told when the script has ended and nothing of it is there any more.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.runtime.diagnose.growth.found import Kind, Suspect, rising
from tfdyno.runtime.diagnose.growth.own_objects import (
    TENSOR_BYTES,
    Held,
    deep_bytes,
    element_bytes,
    grown_at,
    held,
    kind_of,
    roots,
)

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Tensor, Value

MOST_LOOKS = 40
"""The most looks: with more, every second one is dropped."""
NOISE: Mapping[Kind, int] = {"tensors": 64, "functions": 16, "iterators": 4}
"""So many more are nothing: what one step holds for a moment, and what first traces make."""
_LEAST_ELEMENTS_PER_STEP = 0.02
"""The least growth of what a name holds: one at each fiftieth step."""
_LEAST_OBJECTS_PER_STEP = 0.2
"""The least growth of TensorFlow's objects, which nobody is seen to hold."""
_FUNCTION_TYPES = ("Function", "ConcreteFunction")
_TITLES: Mapping[Kind, str] = {
    "tensors": "tensors", "functions": "tf.functions", "iterators": "iterators of datasets",
}  # fmt: skip

Key = tuple[str, str]
"""A name, and the file of the code that has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    step: int
    sizes: Mapping[Key, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Count:
    """Live objects of TensorFlow's."""

    step: int
    tensors: int = 0
    tensor_bytes: int = 0
    functions: int = 0
    iterators: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What can be said of a name that has grown."""

    kind: Kind
    words: str
    bytes_each: float
    is_bytes: bool
    is_bounded: bool


@dataclass(slots=True)
class SuspectWatch:
    """Call ``look`` and ``count`` now and then.

    Attributes:
        callbacks: Of ``fit``, if there are any.
        model: That is trained, if it is known.
        made_at: Line that makes what stays, if one was looked for and found.
    """

    callbacks: Sequence[Any] = ()
    model: Any = None
    made_at: str = ""
    _looks: list[_Look] = field(default_factory=list)
    _counts: list[_Count] = field(default_factory=list)
    _told: dict[Key, _Told] = field(default_factory=dict)

    def look(self, step: int) -> None:
        """Note the size of all that can grow under the user's names."""
        first = self._looks[0].sizes if self._looks else {}
        sizes: dict[Key, int] = {}
        for one in held(roots(self.callbacks, self.model)):
            key = (one.name, one.file)
            sizes[key] = one.size
            if one.size > first.get(key, one.size):
                self._told[key] = _tell(one)
        if all(key in sizes for key in self._told):  # else the code that has them is over
            _add(self._looks, _Look(step=step, sizes=sizes))

    def count(self, step: int) -> None:
        """Count what TensorFlow has alive; what only waits to be collected is not."""
        if gc.isenabled():
            gc.collect()
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
        one = _Count(step=step, tensors=tensors, tensor_bytes=size, functions=functions,
                     iterators=iterators)  # fmt: skip
        _add(self._counts, one)

    def found(self) -> list[Suspect]:
        """Return what has grown until the last look, the fastest first."""
        found = []
        for key, told in self._told.items():
            series = [(one.step, one.sizes[key]) for one in self._looks if key in one.sizes]
            low, best = rising(series)
            if low <= 0 or (not told.is_bytes and best < _LEAST_ELEMENTS_PER_STEP):
                continue
            count = "" if told.is_bytes else f"{series[-1][1]:,} "
            found.append(
                Suspect(words=told.words.replace("{count} ", count), kind=told.kind,
                        bytes_per_step=best * told.bytes_each,
                        low_bytes_per_step=low * told.bytes_each, is_bounded=told.is_bounded)
            )  # fmt: skip
        found.sort(key=lambda one: -one.bytes_per_step)
        return _once(found) + self._uncounted(found)

    def _uncounted(self, named: Sequence[Suspect]) -> list[Suspect]:
        """Live objects that become more though no name of the user's was seen to hold them."""
        found = []
        for kind, title in _TITLES.items():
            series = [(one.step, int(getattr(one, kind))) for one in self._counts]
            if len(series) > 2 and series[-1][1] < series[-2][1]:
                series.pop()  # what goes with a script that is over tells nothing
            low, best = rising(series, noise=NOISE[kind])
            if low <= 0 or best < _LEAST_OBJECTS_PER_STEP or any(one.kind == kind for one in named):
                continue
            each = 0.0
            if kind == "tensors":
                more = self._counts[len(series) - 1].tensor_bytes - self._counts[0].tensor_bytes
                each = TENSOR_BYTES + max(0.0, more) / max(1, series[-1][1] - series[0][1])
            made = f"; what stays is made at {self.made_at}" if self.made_at else ""
            words = f"{series[-1][1]:,} live {title}, {best:.1f} more with each step{made}"
            found.append(
                Suspect(words=words, kind=kind, bytes_per_step=best * each,
                        low_bytes_per_step=low * each)
            )  # fmt: skip
        return found


def _add(series: list[Any], one: Value) -> None:
    """Add a look at another step than the last; of too many every second one goes."""
    if series and series[-1].step == one.step:
        return
    if len(series) >= MOST_LOOKS:
        del series[1::2]
    series.append(one)


def _tell(one: Held) -> _Told:
    kind: Kind = kind_of(one.value)  # type: ignore[assignment]
    if kind == "objects" and one.of_callback:
        kind = "logs"
    place = grown_at(one)
    holder = f"held by {place} ({one.name})" if place else f"held as {one.name}"
    return _Told(
        kind=kind,
        words=f"{_title(one.value, kind)} {holder}",
        bytes_each=1.0 if one.is_bytes else element_bytes(one.value),
        is_bytes=one.is_bytes,
        is_bounded=getattr(one.value, "maxlen", None) is not None,
    )


def _once(found: list[Suspect]) -> list[Suspect]:
    """Return one line for each place: a list within a grown dict is told once."""
    return list({one.words: one for one in reversed(found)}.values())[::-1]


def _title(value: Value, kind: Kind) -> str:
    name = type(value).__name__
    if isinstance(value, list | dict | set) or hasattr(value, "appendleft"):
        nouns = {"functions": "tf.functions", "logs": "entries", "objects": "entries"}
        return f"{name} of {{count}} {nouns.get(kind, kind)}"
    return f"{name} of {deep_bytes(value) / 1e6:,.1f} MB"


def _known_bytes(tensor: Tensor) -> int:
    try:
        return int(tensor.dtype.size or 0) * int(tensor.shape.num_elements() or 0)
    except (AttributeError, TypeError, ValueError):
        return 0
