"""The batches of steps on JAX: how long each is waited for, and of which shapes they are."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from keras import tree

from tfdyno.runtime.diagnose.argument_words import Description, described, difference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfdyno.core.base.untyped import DataIterator, Value

_MOST_EARLIER = 16
Kind = tuple[tuple[Any, str], ...]
"""Shape and type of each part of a batch: what JAX compiles a step for."""


class Batches:
    """What the steps of a training are given, one after the other."""

    def __init__(self, waited: Callable[[float], None], now: Callable[[], float]) -> None:
        """Remember nothing yet; ``waited`` takes the seconds of each ``next``, by ``now``."""
        self._waited, self._now = waited, now
        self.last: Any = None
        """Shapes and types of the last one, in its structure, for who traces the step."""
        self.differs = ""
        """How the last one differs from all before it; empty: there was one of its kind."""
        self._seen: set[Kind] = set()
        self._earlier: list[Description] = []

    def watched(self, iterator: DataIterator) -> Iterator[Any]:
        """Yield the batches of an iterator, each timed and looked at."""
        return _Watched(iterator, self)

    def take(self, iterator: DataIterator) -> Value:
        """Take the next batch; raises ``StopIteration`` where there is none."""
        began = self._now()
        try:
            batch = next(iterator)
        finally:
            self._waited(self._now() - began)
        self._look(batch)
        return batch

    def _look(self, batch: Value) -> None:
        kind = tuple((tuple(one.shape), str(one.dtype)) for one in leaves(batch))
        if kind in self._seen:
            self.differs = ""
            return
        self._seen.add(kind)
        self.last = tree.map_structure(_spec, batch)
        parts = batch if isinstance(batch, tuple | list) else (batch,)
        now = described(_batch, parts, {})
        self.differs = difference(self._earlier, now)
        self._earlier.append(now)
        del self._earlier[:-_MOST_EARLIER]


class _Watched:
    """An iterator, and no generator: an error of the user's data does not end it."""

    def __init__(self, iterator: DataIterator, batches: Batches) -> None:
        self._iterator, self._batches = iterator, batches

    def __iter__(self) -> _Watched:
        return self

    def __next__(self) -> Value:
        return self._batches.take(self._iterator)


def new_batches(waited: Callable[[float], None]) -> Batches:
    """Return batches by the clock of the steps."""
    return Batches(waited, time.perf_counter)


def leaves(batch: Value) -> list[Any]:
    """Return the arrays of a batch; what stands for a missing part is none."""
    return [one for one in tree.flatten(batch) if hasattr(one, "shape") and hasattr(one, "dtype")]


def _spec(one: Value) -> Value:
    import jax

    if one is None or not hasattr(one, "dtype"):
        return one
    return jax.ShapeDtypeStruct(tuple(one.shape), jax.dtypes.canonicalize_dtype(one.dtype))


def _batch(x: Value, y: Value = None, sample_weight: Value = None) -> None:
    """Name the parts of a batch as ``fit`` does."""
