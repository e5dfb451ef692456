"""What callbacks and validation take while Keras' ``fit`` runs: each method timed in place."""

from __future__ import annotations

import functools
import math
import threading
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tfdyno.core.measure.step_facts import CallbackFacts
from tfdyno.model.measure.statistics import mean
from tfdyno.runtime.diagnose.waits import line_of
from tfdyno.runtime.recipe.functions import watch_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfdyno.core.base.untyped import Model, Value
    from tfdyno.runtime.diagnose.clock import StepTimes

VALIDATION = "validation"
PER_STEP = ("on_train_batch_begin", "on_train_batch_end", "on_batch_begin", "on_batch_end")
PER_EPOCH = ("on_epoch_begin", "on_epoch_end")
_SAVING = {"ModelCheckpoint", "BackupAndRestore"}
"""Callbacks of Keras that save, and so do those made from them."""
MOST_VALIDATION_S = 3.0
"""A longer one is cut, and told from the part that was seen."""


@dataclass(slots=True)
class _Spent:
    """Of one callback."""

    callback: Any
    step_s: float = 0.0
    epoch_s: dict[str, list[float]] = field(default_factory=dict)
    method_s: dict[str, float] = field(default_factory=dict)


class CallbackTimes:
    """Times the methods of a user's callbacks, on the thread that trains."""

    def __init__(
        self,
        times: StepTimes,
        now: Callable[[], float] = time.perf_counter,
        *,
        number: Callable[[int], int] = int,
        after_step: Callable[[], None] = lambda: None,
    ) -> None:
        """Tell ``times`` of what is spent between two steps.

        Args:
            times: The clock of the steps.
            now: A clock in seconds.
            number: The user's own number of an epoch, of Keras'.
            after_step: Called when a callback is done with a step, before Keras looks whether it
                asked for the end.
        """
        self.times, self.now, self.number = times, now, number
        self._after_step = after_step
        self._spent: list[_Spent] = []
        self._thread = threading.get_ident()
        self._is_inside = False

    def watch(self, callbacks: Sequence[Any]) -> None:
        """Time all methods that these callbacks have of their own.

        Those that are Keras' empty ones stay as they are: Keras looks at that to decide whether
        it reads the loss from the device after each step.
        """
        for callback in callbacks:
            spent = _Spent(callback)
            self._spent.append(spent)
            for name in (*PER_STEP, *PER_EPOCH):
                method = getattr(callback, name, None)
                if method is not None and not getattr(method, "_is_default", False):
                    setattr(callback, name, self._timed(method, name, spent))

    def _timed(self, method: Callable[..., Any], name: str, spent: _Spent) -> Callable[..., Any]:
        @functools.wraps(method)
        def timed(*arguments: Any, **named: Any) -> Value:
            if self._is_inside or threading.get_ident() != self._thread:
                return method(*arguments, **named)
            if name in PER_EPOCH and arguments:
                arguments = (self.number(arguments[0]), *arguments[1:])
            self._is_inside, began = True, self.now()
            self.times.callback = type(spent.callback).__name__
            try:
                return method(*arguments, **named)
            finally:
                self._is_inside, self.times.callback = False, ""
                self._took(spent, name, self.now() - began)
                if name in PER_STEP:
                    self._after_step()

        return timed

    def _took(self, spent: _Spent, name: str, seconds_s: float) -> None:
        spent.method_s[name] = spent.method_s.get(name, 0.0) + seconds_s
        self.times.called_back(seconds_s)
        if any(kind.__name__ in _SAVING for kind in type(spent.callback).__mro__):
            self.times.saved(seconds_s)
        if name in PER_EPOCH:
            spent.epoch_s.setdefault(name, []).append(seconds_s)
            return
        if self.times.own_from >= 0 and not self.times.done:
            spent.step_s += seconds_s

    def facts(self) -> tuple[CallbackFacts, ...]:
        """Return what each callback took, those that took anything."""
        own = max(0, self.times.own_from)
        steps = max(1, sum(step.count for step in self.times.steps[own:]))
        found = []
        for spent in self._spent:
            if not spent.method_s:
                continue
            longest = max(spent.method_s, key=spent.method_s.__getitem__)
            found.append(
                CallbackFacts(
                    name=type(spent.callback).__name__,
                    place=_place(spent.callback, longest),
                    per_step_s=spent.step_s / steps,
                    per_epoch_s=math.fsum(_typical(taken) for taken in spent.epoch_s.values()),
                )
            )
        return tuple(found)


def in_each_step(found: Sequence[CallbackFacts], steps: int) -> tuple[CallbackFacts, ...]:
    """Return what callbacks take where an epoch is one call of the step, which holds all of it.

    Args:
        found: What they take.
        steps: Of an epoch; more than one are run by the same call.
    """
    return tuple(
        replace(one, per_step_s=one.per_step_s + one.per_epoch_s / steps, per_epoch_s=0.0)
        for one in found
    )


def _typical(taken: Sequence[float]) -> float:
    """Return the mean; the first call does more than the others where there are others."""
    return mean(taken[1:] or taken)


def _place(callback: Value, name: str) -> str:
    given = vars(callback).get(name)
    own = getattr(given, "__wrapped__", None)  # what a LambdaCallback was given
    return line_of(getattr(own, "__func__", own)) or line_of(getattr(type(callback), name, None))


class ValidationTimes:
    """Times the validation that ``fit`` itself makes; a long one is cut short."""

    def __init__(
        self,
        model: Model,
        now: Callable[[], float] = time.perf_counter,
        most_s: float = MOST_VALIDATION_S,
        told: Callable[[float], None] = lambda _seconds_s: None,
    ) -> None:
        """Time nothing yet; ``told`` takes the seconds of each validation as it ran."""
        self.model, self.now, self.most_s, self.told = model, now, most_s, told
        self.is_enough: Callable[[], bool] = lambda: False
        """Whether the training is about to end, so that no more validation is needed."""
        self.seconds_s: list[float] = []
        self.was_cut = False
        self._is_open = False
        """Whether it was cut and nobody knows what was left."""
        self._calls, self._call_limit, self._until = 0, 0, math.inf
        self._was_warm = False

    def watch(self) -> None:
        """Time every validation of the model's ``fit`` from now on."""
        evaluate = self.model.evaluate

        def timed_evaluate(*arguments: Any, **named: Any) -> Value:
            if not named.get("_use_cached_eval_dataset"):
                return evaluate(*arguments, **named)  # a callback's own, or the script's
            began = self.now()
            try:
                return self._validate(lambda: evaluate(*arguments, **named))
            finally:
                self.told(self.now() - began)

        self.model.evaluate = timed_evaluate
        watch_calls(self.model, "test", self._counted)

    def facts(self, every: int = 1) -> tuple[CallbackFacts, ...]:
        """Return what validation takes per epoch; nothing where there was none.

        Args:
            every: So many epochs are validated once.
        """
        if not self.seconds_s:
            return ()
        seconds_s = _typical(self.seconds_s) / max(1, every)
        return (CallbackFacts(name=VALIDATION, per_epoch_s=seconds_s),)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not as the validation would be."""
        if self._is_open:
            least = f"after {self.most_s:g} s: it takes at least so long"
            return (f"Validation was cut short {least}.",)
        if self.was_cut:
            return ("Validation was cut short: its time is that of the part that was seen.",)
        return ()

    def _validate(self, evaluate: Callable[[], Any]) -> Value:
        if self.seconds_s and self.is_enough():
            self._call_limit = 1
            return evaluate()
        if not self._was_warm:  # the first call traces, and compiles
            self._was_warm, self._call_limit = True, 1
            evaluate()
        self._calls, self._call_limit, began = 0, 0, self.now()
        self._until = began + self.most_s
        results = evaluate()
        seconds_s, self._until = self.now() - began, math.inf
        total = self._total_calls()
        if total > self._calls > 0:
            self.was_cut = True
            seconds_s *= total / self._calls
        elif not total and self.now() >= began + self.most_s:
            self._is_open = True
        self.seconds_s.append(seconds_s)
        return results

    def _total_calls(self) -> int:
        iterator = getattr(self.model, "_eval_epoch_iterator", None)
        batches = getattr(iterator, "steps_per_epoch", 0) or getattr(iterator, "num_batches", 0)
        return math.ceil((batches or 0) / int(self.model.steps_per_execution))

    def _counted(self, run: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*taken: Any) -> Value:  # an iterator; on JAX a state before
            logs = run(*taken)
            self._calls += 1
            if self._call_limit or self.now() >= self._until:
                self.model.stop_evaluating = True
            return logs

        return counted
