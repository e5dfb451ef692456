"""Data as the user's Python takes it: what each ``next`` waits, and where a dataset was made."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

import tensorflow as tf

from tfdyno.process.own_lines import code_place, own_place
from tfdyno.runtime.base.replaced import replaced
from tfdyno.runtime.base.tensorflow_internals import nexts_changed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from tfdyno.core.base.untyped import DataIterator, Dataset, Function, Instance, Value

_MADE_AT = "_tfdyno_made_at"


class Reading:
    """What was read by Python code, outside of all graphs."""

    def __init__(self, waited: Callable[[float], None]) -> None:
        """Tell ``waited`` of the seconds of each ``next`` of the main thread."""
        self.waited = waited
        self.dataset: Any = None
        """The last one whose elements were taken by Python."""
        # Weak, as below: each with the seconds that Python waited for it.
        self._since: WeakKeyDictionary[Any, float] = WeakKeyDictionary()
        self._before: WeakSet[Any] = WeakSet()
        self._of_step: Any = None
        self._thread = threading.get_ident()
        self._deep = False
        # Weak: a training that opens an iterator in each step would seem to leak.
        self._of: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        self._whole: Any = None

    def distributed(self, dataset: Dataset) -> None:
        """Remember the whole dataset that a strategy is about to split."""
        if not self._deep:
            self._whole = dataset

    def opened(self, iterator: DataIterator, dataset: Dataset) -> None:
        """Remember what an iterator reads."""
        self._of[iterator] = dataset

    def dataset_of(self, iterator: DataIterator) -> Value:
        """Return what an iterator reads; None: not known."""
        return self._of.get(iterator, self._whole)

    def of_step(self) -> Value:
        """Return what was read for the step that begins now; None: nothing.

        Of several datasets, as of a ``zip``, the one that Python waited for longest. One that was
        not read for the step before is none of them: a validation between the two reads its own.
        """
        if self._since:
            usual = {one: s for one, s in self._since.items() if one in self._before}
            self._of_step = max(usual, key=usual.__getitem__) if usual else self.dataset
            self._before, self._since = WeakSet(self._since), WeakKeyDictionary()
        return self._of_step

    def forget(self) -> None:
        """Forget what was read so far."""
        self.dataset = self._of_step = None
        self._since.clear()
        self._before.clear()

    @contextlib.contextmanager
    def apart(self) -> Iterator[None]:
        """Neither time nor remember what is read meanwhile."""
        self._deep = True
        try:
            yield
        finally:
            self._deep = False

    def took(self, iterator: DataIterator, take: Callable[[], Any]) -> Value:
        """Take the next element, timed where it is Python that waits for it."""
        eager = tf.executing_eagerly() and threading.get_ident() == self._thread
        if self._deep or not eager:
            return take()
        self._deep, began = True, time.perf_counter()
        try:
            element = take()
        finally:
            self._deep = False
            waited_s = time.perf_counter() - began
            self.waited(waited_s)
        self.dataset = self.dataset_of(iterator)
        if self.dataset is not None:
            self._since[self.dataset] = self._since.get(self.dataset, 0.0) + waited_s
        return element


@contextlib.contextmanager
def reading_watched(reading: Reading) -> Iterator[None]:
    """Time every ``next`` of a ``tf.data`` iterator, also of one that a strategy made."""
    strategy = tf.distribute.Strategy
    start, split = tf.data.Dataset.__iter__, strategy.experimental_distribute_dataset

    def started(self: Instance) -> Value:
        iterator = start(self)
        reading.opened(iterator, self)
        return iterator

    def distributed(self: Instance, dataset: Dataset, *rest: Any, **named: Any) -> Value:
        reading.distributed(dataset)
        return split(self, dataset, *rest, **named)

    opened = replaced(
        (tf.data.Dataset, "__iter__", started),
        (strategy, "experimental_distribute_dataset", distributed),
    )
    with opened, nexts_changed(lambda own: _timed(own, reading)):
        yield


def _timed(original: Callable[..., Any], reading: Reading) -> Callable[..., Any]:
    def timed(self: Instance, *arguments: Any, **named: Any) -> Value:
        return reading.took(self, lambda: original(self, *arguments, **named))

    return timed


def places_kept() -> AbstractContextManager[None]:
    """Let each dataset remember the line of the user's code that made it."""
    kind = tf.data.Dataset
    original = kind.__init__

    def made(self: Instance, *arguments: Any, **named: Any) -> None:
        original(self, *arguments, **named)
        with contextlib.suppress(AttributeError):
            object.__setattr__(self, _MADE_AT, own_place())

    return replaced((kind, "__init__", made))


def made_at(stage: Dataset) -> str:
    """Return ``train.py:41`` of the call that made a stage; empty: not the user's, or not known."""
    return str(getattr(stage, _MADE_AT, ""))


def line_of(function: Function) -> str:
    """Return ``train.py:12`` where a function of the user's own begins; empty for others."""
    code = getattr(getattr(function, "func", function), "__code__", None)
    if code is None:
        code = getattr(vars(type(function)).get("__call__"), "__code__", None)
    return code_place(code)
