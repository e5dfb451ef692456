"""Fit after fit of one script: what stays in memory when a fit is over and the next begins.

A search over settings makes a model, trains it and makes the next. TensorFlow and XLA keep what
they compiled for as long as the process lives, whatever the script lets go of. That does not show
within a fit, so that later fits of the script are run too: the user's own, each of them short.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import linecache
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import keras

from tfdyno.core.base.interval import NOTHING, Interval
from tfdyno.core.base.units import format_bytes
from tfdyno.core.measure.step_facts import FitsFacts
from tfdyno.model.memory.growth import slope_of_fits
from tfdyno.process.own_lines import own_file, own_place
from tfdyno.runtime.base.memory_counters import MemoryCounters
from tfdyno.runtime.diagnose.host import memory_free_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from tfdyno.core.base.untyped import Logs, Model, Value
    from tfdyno.core.measure.step_facts import StepFacts
    from tfdyno.runtime.diagnose.watching import StepsInspection

MOST_FITS = 32
_LOOPS = (
    ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip
_OURS = str(Path(__file__).parents[3])
"""The folder of this package."""
MOST_FIT_S = 2.0
"""The longest time of its steps, from the end of the first one on: what stays is made when it is
compiled."""
NONE_BYTES_PER_FIT = 64.0 * 1024
"""Nothing grows where the upper end of the interval is below."""
ONE_FIT = (
    "One call of fit was looked at: the script is not seen to call it again, and what stays from "
    "one fit to the next was not looked at."
)


class LaterFits:
    """Runs later calls of a script's ``fit`` and reads the memory before each.

    Attributes:
        first: What was seen of the first one; set before the others come.
    """

    def __init__(self, look: StepsInspection, now: Callable[[], float] = time.monotonic) -> None:
        """Run nothing yet."""
        self.first: StepFacts | None = None
        self._look, self._now = look, now
        self._counters = MemoryCounters()
        self._begin_bytes: list[int] = []
        self._models: list[int] = []
        self._counted_by: Literal["kernel", "allocator"] = "allocator"
        self._goes_on, self._ran = False, 1
        self._began = 0.0
        self._place = ""

    def go_on(self) -> bool:
        """Return whether the script is seen to call ``fit`` again; asked within its first call."""
        self._goes_on = calls_again("fit")
        if self._goes_on:
            self._place, self._began = own_place(), self._now()
            with contextlib.suppress(Exception):  # then nothing is told of later fits
                self._counters.open()
            self._look.so_far.goes_on(self.facts)
        return self._goes_on

    def begins(self) -> bool:
        """Read the memory before one more; False: enough is known, or the time is over."""
        gc.collect()
        used = self._counters.allocated_bytes()
        if used < 0:
            self._counted_by, used = "kernel", self._counters.resident_bytes()
        self._begin_bytes.append(used)
        self._models.append(sum(issubclass(type(one), keras.Model) for one in gc.get_objects()))
        number = len(self._begin_bytes) + 1
        self._look.progress(f"fit {number}, {format_bytes(used)} in use")
        is_late = self._now() - self._began > self._look.limits.fits_s
        return not (number > MOST_FITS or is_late or _is_sure(slope_of_fits(self._begin_bytes)))

    def fit(self, model: Model, arguments: dict[str, Any]) -> Value:
        """Train as the user's call would, but for the length; returns what Keras does."""
        self._ran += 1
        cut = _Cut(self._look.so_far.heed)
        given = arguments.get("callbacks") or []
        if isinstance(given, keras.callbacks.CallbackList):
            cut.set_model(model)
            given.callbacks.append(cut)
        else:
            arguments = {**arguments, "callbacks": [*keras.tree.flatten(given), cut]}
        return model.fit(**arguments)

    def facts(self) -> StepFacts:
        """Return what was seen of the first one, with the growth from fit to fit."""
        assert self.first
        if not self._goes_on:
            return replace(self.first, notes=(*self.first.notes, ONE_FIT))
        told = slope_of_fits(self._begin_bytes)
        ends = told or NOTHING
        fits = FitsFacts(
            fits=self._ran,
            counted_by=self._counted_by,
            begin_bytes=tuple(self._begin_bytes),
            models=tuple(self._models),
            low_bytes_per_fit=ends.low,
            bytes_per_fit=ends.best,
            high_bytes_per_fit=ends.high,
            is_told=told is not None,
            place=self._place,
            free_bytes=memory_free_bytes(Path("/")),
        )
        return replace(self.first, fits=fits, notes=(*self.first.notes, *_notes(fits)))


class _Cut(keras.callbacks.Callback):
    """Ends a fit when its steps took long enough."""

    def __init__(self, heed: Callable[[], None]) -> None:
        super().__init__()
        self._heed, self._first_end = heed, 0.0

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Take the end of a batch from Keras."""
        self._heed()
        self._first_end = self._first_end or time.monotonic()
        if time.monotonic() - self._first_end >= MOST_FIT_S:
            self.model.stop_training = True


def _is_sure(told: Interval | None) -> bool:
    if told is None:
        return False
    return told.low >= told.best / 2 > 0 or told.high <= NONE_BYTES_PER_FIT


def _notes(fits: FitsFacts) -> tuple[str, ...]:
    if not fits.is_told:
        return (f"The script calls fit again, but only {fits.fits} ran: too few to tell what stays "
                "from one to the next.",)  # fmt: skip
    return (f"The first of {fits.fits} fits was looked at step by step; the others ran for "
            f"{MOST_FIT_S:g} s of steps each at most.",)  # fmt: skip


def calls_again(name: str) -> bool:
    """Return whether the running call of ``name`` stands in a loop, or before another one of it.

    So does the call of the function that it stands in, and of the function around that: a search
    may be a loop of the user's own or of a library.
    """
    names = {name}
    for frame in _frames():
        if _is_in_loop(frame) or (
            own_file(frame.f_code.co_filename) and _is_called_below(frame, names)
        ):
            return True
        names.add(frame.f_code.co_name)
    return False


def _frames() -> Iterator[FrameType]:
    """Walk from the innermost one outwards to the script's module; tfdyno's own left out."""
    frame: FrameType | None = sys._getframe(1)
    while frame:
        file = frame.f_code.co_filename
        if not file.startswith(_OURS):
            yield frame
            if frame.f_code.co_name == "<module>":
                return
        frame = frame.f_back


def _is_in_loop(frame: FrameType) -> bool:
    """Treat a loop around a function's call as the caller's, seen in the caller's frame."""
    first, line = frame.f_code.co_firstlineno, frame.f_lineno
    return any(
        first <= node.lineno <= line <= (node.end_lineno or line)
        for node in _nodes(frame.f_code.co_filename)
        if isinstance(node, _LOOPS)
    )


def _is_called_below(frame: FrameType, names: set[str]) -> bool:
    return any(
        node.lineno > frame.f_lineno and _called(node) in names
        for node in _nodes(frame.f_code.co_filename)
        if isinstance(node, ast.Call)
    )


def _called(node: ast.Call) -> str:
    function = node.func
    return getattr(function, "attr", "") or getattr(function, "id", "")


@functools.cache
def _nodes(file: str) -> tuple[ast.AST, ...]:
    try:
        return tuple(ast.walk(ast.parse("".join(linecache.getlines(file)))))
    except (SyntaxError, ValueError):
        return ()
