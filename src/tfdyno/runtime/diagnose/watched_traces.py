"""Every ``tf.function`` that is called while steps run: how often it was traced again, and why.

A first trace is no news. News are a second one of the same function, and first ones of functions
that the same code makes again and again.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import keras
import tensorflow as tf

from tfdyno.core.measure.step_facts import RetraceFacts
from tfdyno.process.own_lines import code_place, own_place
from tfdyno.runtime.diagnose.argument_words import Description, described, difference

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Function, Value

FUNCTION_TYPE: Any = type(tf.function(lambda: None))
MADE_AGAIN = "a new tf.function for each call"
DATASET_AGAIN = "a new dataset for each call"
ITERATOR_AGAIN = "a new iterator over several devices for each call"
_ITERATORS = "multi_device_iterator_ops.py"
"""TensorFlow's code that makes its functions anew for each iterator."""
_FEWEST_MADE = 2
"""The fewest made after the first: a second function of the same code may well be meant."""
_MOST_EARLIER = 16
_CALLS = "_tfdyno_calls"
_DEEP = 4
"""Wrappers of Keras, of ``tf.data`` and of the user's around what is really traced."""

Key = tuple[Any, ...]


@dataclass(slots=True, kw_only=True)
class _Seen:
    """Functions of one code, together."""

    title: str
    place: str
    calls: int = 0
    traces: int = 0
    seconds_s: float = 0.0
    differs: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    first_step: int = -1
    made_steps: set[int] = field(default_factory=set)
    made_s: float = 0.0
    made_place: str = ""
    of_data: bool = False
    of_iterator: bool = False
    callback: str = ""


class TraceWatch:
    """Counts while ``start`` and ``stop`` enclose the steps; the owner counts ``step`` up.

    A call that traces nothing costs two looks at a counter.
    """

    def __init__(self, callback_now: Callable[[], str] = str) -> None:
        """Watch nothing yet; ``callback_now`` names the user's callback that runs."""
        self.step, self._callback_now = 0, callback_now
        self.step_s: dict[int, float] = {}
        """Seconds of tracing, by the step it was in; first traces of the watch left out."""
        self._seen: dict[Key, _Seen] = {}
        self._earlier: WeakKeyDictionary[Any, list[Description]] = WeakKeyDictionary()
        self._made_at: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._compiled: WeakKeyDictionary[Any, set[Any]] = WeakKeyDictionary()
        self._keys: WeakKeyDictionary[Any, Key] = WeakKeyDictionary()
        self._within = threading.local()
        self._originals: dict[str, Callable[..., Any]] = {}

    def start(self) -> None:
        """Watch from now on."""
        names = ("__init__", "__call__", "get_concrete_function")
        self._originals = {name: getattr(FUNCTION_TYPE, name) for name in names}
        FUNCTION_TYPE.__init__ = self._init()
        FUNCTION_TYPE.__call__ = self._watched("__call__")
        FUNCTION_TYPE.get_concrete_function = self._watched("get_concrete_function")

    def stop(self) -> None:
        """Leave TensorFlow as it was."""
        for name, original in self._originals.items():
            setattr(FUNCTION_TYPE, name, original)
        self._originals = {}

    def facts(self) -> tuple[RetraceFacts, ...]:
        """Return what was traced again, the longest first."""
        for function, key in self._keys.items():
            self._seen[key].calls += vars(function).pop(_CALLS, 0)
        found = [facts for seen in self._seen.values() if (facts := _facts(seen))]
        return tuple(sorted(found, key=lambda one: -one.seconds_s))

    def _init(self) -> Callable[..., None]:
        original = self._originals["__init__"]

        @functools.wraps(original)
        def watched_init(function: Function, *args: Any, **named: Any) -> None:
            original(function, *args, **named)
            self._made_at[function] = own_place()

        return watched_init

    def _watched(self, name: str) -> Callable[..., Any]:
        original, within = self._originals[name], self._within

        @functools.wraps(original)
        def watched(function: Function, *args: Any, **named: Any) -> Value:
            if getattr(within, "depth", 0) or not tf.executing_eagerly():  # a part of another
                return original(function, *args, **named)
            before = function.experimental_get_tracing_count()
            within.depth = 1
            began = time.perf_counter()
            try:
                return original(function, *args, **named)
            finally:
                within.depth = 0
                held = function.__dict__  # a weak dictionary would take ten times as long
                held[_CALLS] = held.get(_CALLS, 0) + 1
                with contextlib.suppress(Exception):  # whatever it is, it is not the user's
                    self._called(function, args, named, before, began)

        return watched

    def _called(
        self,
        function: Function,
        args: Value,
        named: Value,
        before: int,
        began: float,
    ) -> None:
        if function.experimental_get_tracing_count() != before:
            self._traced(function, args, named, before, time.perf_counter() - began)
        elif function._jit_compile:
            key = _shapes(args, named)
            if key not in self._compiled.setdefault(function, set()):
                self._compiled_again(function, args, named, key, began)

    def _traced(
        self, function: Function, args: Value, named: Value, before: int, seconds_s: float
    ) -> None:  # fmt: skip
        now = described(_python(function), args, named)
        seen = self._of(function)
        if function._jit_compile:
            self._compiled.setdefault(function, set()).add(_shapes(args, named))
        if before:
            count = function.experimental_get_tracing_count() - before
            self._again(seen, difference(self._known(function), now), count, seconds_s)
        elif seen.first_step < 0:
            seen.first_step = self.step
        elif self.step > seen.first_step:
            seen.made_steps.add(self.step)
            seen.made_s += seconds_s
            self._spend(seconds_s)
            seen.made_place = self._made_at.get(function, "") or seen.place
            seen.callback = self._callback_now()
        self._remember(function, now)

    def _compiled_again(
        self, function: Function, args: Value, named: Value, key: Value, began: float
    ) -> None:  # fmt: skip
        """Count XLA's compiles, one for each shape, though one trace may serve all."""
        seconds_s = time.perf_counter() - began
        known = self._compiled[function]
        known.add(key)
        now = described(_python(function), args, named)
        earlier = self._earlier.get(function)
        if earlier and len(known) > 1:
            differs = difference(earlier, now)
            if "shape" in differs:
                self._again(self._of(function), f"{differs} (compiled by XLA)", 1, seconds_s)
        self._remember(function, now)

    def _again(self, seen: _Seen, differs: str, count: int, seconds_s: float) -> None:
        seen.place = own_place() or seen.place
        seen.traces += count
        seen.seconds_s += seconds_s
        seen.callback = self._callback_now()
        self._spend(seconds_s)
        kind = differs.partition(":")[0]
        seen.differs[kind] += 1
        seen.examples[kind] = differs

    def _spend(self, seconds_s: float) -> None:
        self.step_s[self.step] = self.step_s.get(self.step, 0.0) + seconds_s

    def _remember(self, function: Function, now: Description) -> None:
        earlier = self._earlier.setdefault(function, [])
        earlier.append(now)
        del earlier[:-_MOST_EARLIER]

    def _known(self, function: Function) -> list[Description]:
        """Return earlier traces' arguments; those from before the watch as TensorFlow kept them."""
        if function in self._earlier:
            return self._earlier[function]
        found = []
        for concrete in function._list_all_concrete_functions()[:-1]:
            args, named = concrete.structured_input_signature
            found.append(described(_python(function), args, named))
        return found

    def _of(self, function: Function) -> _Seen:
        key, title, of_data = _identity(function)
        key = (*key, own_place()) if of_data else key
        self._keys[function] = key
        if key not in self._seen:
            code = getattr(_python(function), "__code__", None)
            self._seen[key] = _Seen(
                title=title,
                place=own_place() or code_place(code),
                of_data=of_data,
                of_iterator=code is not None and code.co_filename.endswith(_ITERATORS),
            )
        return self._seen[key]


def _facts(seen: _Seen) -> RetraceFacts | None:
    made = len(seen.made_steps)
    if seen.of_data and seen.first_step < 0:
        return None
    if made >= _FEWEST_MADE and seen.made_s >= seen.seconds_s:
        return RetraceFacts(
            function=seen.title,
            place=seen.made_place,
            traces=made,
            calls=max(seen.calls, made + 1),
            seconds_s=seen.made_s,
            differs=_made_again(seen),
            callback=seen.callback,
        )
    if not seen.traces:
        return None
    most = seen.differs.most_common(1)[0][0]
    return RetraceFacts(
        function=seen.title, place=seen.place, traces=seen.traces,
        calls=max(seen.calls, seen.traces), seconds_s=seen.seconds_s, differs=seen.examples[most],
        callback=seen.callback,
    )  # fmt: skip


def _made_again(seen: _Seen) -> str:
    if seen.of_iterator:
        return ITERATOR_AGAIN
    return DATASET_AGAIN if seen.of_data else MADE_AGAIN


def _identity(function: Function) -> tuple[Key, str, bool]:
    """Return the same for all functions of one piece of code, its name, whether of ``tf.data``.

    Keras makes its train and its test function by the same lines: the functions, layers and
    models that they close over tell them apart.
    """
    parts: list[Any] = []
    title, of_data, is_wrapper = "", False, False
    waiting = [(_python(function), 0)]
    while waiting:
        one, depth = waiting.pop()
        owner = getattr(one, "__self__", None)
        if isinstance(owner, keras.layers.Layer):
            parts.append(id(owner))
        one = getattr(one, "__func__", one)
        code = getattr(one, "__code__", None)
        if code is None:
            if isinstance(one, keras.layers.Layer):
                parts.append(id(one))
            continue
        parts.append(code)
        wraps = "structured_function" in code.co_filename
        of_data = of_data or wraps
        if code_place(code) or not title or (is_wrapper and not wraps):  # also one of Keras' own
            title, is_wrapper = getattr(one, "__name__", "function"), wraps
        if depth < _DEEP:
            cells = [_content(cell) for cell in getattr(one, "__closure__", None) or ()]
            waiting += [(each, depth + 1) for each in cells if callable(each)]
            waiting += [(each._func, depth + 1) for each in cells if hasattr(each, "_func")]
    return tuple(parts), title, of_data


def _content(cell: Value) -> Value:
    try:
        return cell.cell_contents
    except (AttributeError, ValueError):  # empty so far
        return None


def _python(function: Function) -> Value:
    return getattr(function, "_python_function", None) or function.python_function


def _shapes(args: Value, named: Value) -> Value:
    return tuple(
        tuple(one.shape) for one in tf.nest.flatten((args, named)) if isinstance(one, tf.Tensor)
    )
