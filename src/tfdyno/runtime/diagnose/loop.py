"""A training loop of the user's own looked at in place: its step, its reading, its Python."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.runtime.bench.loop import Loop, LoopDone, watched
from tfdyno.runtime.diagnose.between import SAVING, Between
from tfdyno.runtime.diagnose.callbacks import VALIDATION
from tfdyno.runtime.diagnose.held import (
    SEVERAL_WORKERS,
    held_dataset,
    leading,
    not_repeated,
    timed_steps,
)
from tfdyno.runtime.diagnose.input import Source, by_itself
from tfdyno.runtime.diagnose.model import facts_of
from tfdyno.runtime.diagnose.waits import Reading, reading_watched
from tfdyno.runtime.diagnose.watching import (
    Rest,
    StepsInspection,
    Subject,
    Watched,
    new_times,
    profile_of,
    refuse_few,
    step_facts,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfdyno.core.base.untyped import Dataset, Function, Model, Value
    from tfdyno.core.measure.step_facts import OperationFacts, StepFacts
    from tfdyno.runtime.base.written_files import Aside


_VALIDATES, _PREDICTS = ("evaluate", "test_on_batch"), ("predict", "predict_on_batch")


class LoopLook(Loop):
    """Finds the step of a loop as a bench does, and looks at it until enough was seen."""

    def __init__(self, look: StepsInspection, aside: Aside) -> None:
        """Watch for a step; nothing is found yet.

        Args:
            look: What is looked at.
            aside: Where the script writes; there until ``facts`` has read what lies in it.
        """
        self.times = new_times(look)
        aside.told = self._saved
        super().__init__(look.workload, look.recipe, look.progress)
        self.look, self.watched = look, Watched(self.times, progress=look.progress)
        look.so_far.begin(self.times, self.seen)
        self.reading = Reading(self.times.waited)
        self.between = Between(self.times)
        self._beside: list[Callable[[], Any]] = []
        """Calls of other functions that belong to the step."""
        self.held_s: tuple[float, ...] = ()
        self.operations: OperationFacts | None = None
        self.notes: list[str] = []
        self.dataset: Any = None
        """What the loop reads; None: it is not known yet."""
        self._read: Any = None
        """What was read for the last step; after it there may be validation."""
        self._told: dict[str, Any] | None = None
        self._last: Callable[[], Any] | None = None
        self._call: LastCall | None = None

    def function_called(
        self,
        function: Function,
        call: Callable[..., Any],
        args: tuple[Any, ...],
        named: dict[str, Any],
    ) -> Value:
        """Run one call of a ``tf.function``; keep what the step was called with."""
        if not self._active and id(function.python_function) == self._step:
            self._call = LastCall(function=function, run=call, args=args, named=named)
        if self._active or self._step is None:
            return super().function_called(function, call, args, named)
        count, traces = len(self.times.steps), function.experimental_get_tracing_count()
        began = time.perf_counter()
        result = super().function_called(function, call, args, named)
        if len(self.times.steps) == count:  # it was not the step
            trains = id(function.python_function) in self._with_gradient
            is_new = function.experimental_get_tracing_count() != traces
            self.between.ran(
                function,
                partial(call, function, *args, **named),
                time.perf_counter() - began,
                is_usual=trains or is_new,
            )
        return result

    def batch_trained(self, model: Model, call: Callable[[], Any], bound: dict[str, Any]) -> Value:
        """Run one ``train_on_batch``; of a second model it belongs to the step of the first.

        Raises:
            UsageError: It runs on JAX, where the steps of ``fit`` alone are looked at.
        """
        if self.look.backend == "jax":
            what = f"{self.workload.reference} trains by a loop of its own (train_on_batch)"
            why = "on JAX the steps of model.fit are looked at"
            remedy = "leave the training to model.fit, or look at it on TensorFlow"
            raise UsageError(what, why=why, remedy=remedy)
        began, count = time.perf_counter(), len(self.times.steps)
        result = super().batch_trained(model, call, bound)
        if len(self.times.steps) == count:
            self.between.trained(call, time.perf_counter() - began)
        return result

    @property
    def is_timing(self) -> bool:
        """Whether what the loop does beside its steps is run, and timed."""
        return self.outcome is not None and not self.times.done

    def beside(self, name: str, call: Callable[[], Any]) -> Value:
        """Run what Keras does for the loop between two steps."""
        began = time.perf_counter()
        self._active.append(self._step)  # no function within is the loop's own
        try:
            with self.reading.apart():  # nor is the data that it makes of its arguments
                return call()
        finally:
            self._active.pop()
            seconds_s = time.perf_counter() - began
            if name in _VALIDATES:
                self.between.did(VALIDATION, name, seconds_s)
            elif name in _PREDICTS:  # what saves is told by ``saved``
                self.between.predicted(name, seconds_s)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the script."""
        with watched(self), reading_watched(self.reading), contextlib.closing(self.watched):
            yield

    def _saved(self, name: str, seconds_s: float) -> None:
        if self.is_timing:
            self.between.did(SAVING, name, seconds_s)

    def _prepare(self) -> None:
        super()._prepare()
        self.reading.forget()  # what the script read before its loop

    def gradient_asked(self, sources: Dataset, _target: Value) -> None:
        """Note that a tape was asked for gradients; in a loop without functions that is a step."""
        if not self._active and tf.executing_eagerly():
            self._read = self.reading.of_step()
        super().gradient_asked(sources, _target)

    def facts(self) -> StepFacts:
        """Return what was seen when the script has ended, by itself or because it was enough.

        Raises:
            UsageError: Its loop cannot be looked at.
        """
        if self.error:
            raise self.error
        self.watched.close()
        refuse_few(self.times)
        if self.look.limits.memory_alone:
            return self.seen()
        if self._last is not None and not self.times.done:
            self._hold(self._last)  # the script has ended, what its step was called with is kept
        self.look.progress("looking at the input by itself")
        said = self._said()
        rest = Rest(
            held_s=self.held_s,
            operations=self.operations,
            said=said,
            notes=tuple(self.notes),
        )
        return self._facts(*self._with_input(rest))

    def seen(self, end: str = "") -> StepFacts:
        """Return what was seen of the loop itself; runs nothing.

        Args:
            end: Why it ended before its time.
        """
        said = self._said()
        return self._facts(Rest(said=said, end=end, notes=tuple(self.notes)), 0)

    def _facts(self, rest: Rest, read: int) -> StepFacts:
        """Return all of it; ``read`` is the batch over all replicas, 0 where it is not known."""
        assert self.outcome
        outcome, model = self.outcome, self.outcome.model
        samples = rest.input.samples_per_epoch if rest.input else 0
        callbacks, steps_per_epoch = self.between.facts(samples // read if read else 0)
        rest = replace(rest, callbacks=callbacks)
        subject = Subject(
            title=outcome.title,
            source="loop",
            model=model,
            batch_size=outcome.batch_size * outcome.replica_count or read,
            replica_count=outcome.replica_count,
            worker_count=self.worker_count,
            steps_per_epoch=steps_per_epoch,
            execution="" if model is not None else str(self.execution),
            function=self._function,
            cards=self.look.cards,
            notes=outcome.notes,
        )
        return step_facts(subject, self.watched, rest)

    @property
    def _function(self) -> Value:
        return self._compiled or self._call.function if self._call else None

    def _said(self) -> dict[str, Any]:
        """Return what the step tells of itself, asked while the script's variables are there."""
        if self._told is None:
            model = self.outcome.model if self.outcome else None
            arguments = self._call.arguments if self._call else {}
            try:
                self._told = facts_of(model, arguments, function=self._function)
            except Exception as error:  # the script has ended, and with it what the step refers to
                self._told = {}
                self.notes.append(f"The step could not be looked into: {str(error)[:200]}.")
        return self._told

    def _with_input(self, rest: Rest) -> tuple[Rest, int]:
        """Return what is known of the input too, and the batch over all replicas; 0: not known."""
        dataset = self.dataset if self.dataset is not None else self._read
        if not isinstance(dataset, tf.data.Dataset):
            return rest, 0
        gc.collect()  # iterators that the script has left would go on filling their buffers
        found, batch, why = by_itself(Source(dataset=dataset), self.look.limits)
        if found is None:
            return replace(rest, notes=(*rest.notes, why)), 0
        size, count = leading(batch), int(dataset.cardinality())
        found = replace(found, samples_per_epoch=max(0, count) * size)
        return replace(rest, input=found), size

    def _began(self, result: Value, seconds_s: float) -> None:
        if seconds_s:
            self.times.first(seconds_s)

    def _passed(self) -> None:
        if self.times.end():
            raise LoopDone

    def _timed(self, call: Callable[[], Any]) -> Value:
        self._last, self._beside = call, self.between.step_begins()
        self._read = self.reading.of_step()
        self.times.begin()
        try:
            result = call()
        except BaseException:  # as where the step reads its data itself, at the end of it
            self.times.drop()
            raise
        if self.times.end():
            if not self.look.limits.memory_alone:
                self._hold(call)
            raise LoopDone
        return result

    def _hold(self, call: Callable[[], Any]) -> None:
        """Repeat the same step with what it was called with last."""
        self.watched.close()
        self._said()
        self.dataset = self._read
        if self.worker_count > 1:
            self.notes.append(SEVERAL_WORKERS)
            return
        try:
            step = self._held_step(call)
            if step is None:
                self.notes.append("The step reads its data itself: it was not run without.")
                return
            # With the other functions that most steps call, as those of a second model.
            whole = in_turns(step, self._beside if self.between.often() else ())
            self.held_s = timed_steps(whole, self.look.limits.held_s, sync=self.times.sync)
            self.operations = profile_of(whole, self.held_s, self._said())
        except TfdynoError:
            raise
        except Exception as error:  # a step that cannot be run twice on the same data
            self.notes.append(not_repeated(error))

    def _held_step(self, call: Callable[[], Any]) -> Callable[[], Any] | None:
        """Return the call; where it takes an iterator, with one of a batch that is held."""
        last = self._call
        if last is None:
            return call
        if last.is_distributed:
            return None
        if last.iterator is None:
            return call
        self.dataset = self.reading.dataset_of(last.iterator)
        return last.held(self._compiled)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastCall:
    """One call of a ``tf.function``."""

    function: Any
    run: Callable[..., Any]
    """Calls it unwatched."""
    args: tuple[Any, ...]
    named: Mapping[str, Any]

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments by name, those without one by their number."""
        return {str(number): value for number, value in enumerate(self.args)} | dict(self.named)

    @property
    def is_distributed(self) -> bool:
        """Whether it reads what a strategy has split."""
        return any(
            isinstance(one, tf.distribute.DistributedIterator) for one in self.arguments.values()
        )

    @property
    def iterator(self) -> Value:
        """What it reads its data from; None: it is given its data."""
        values = self.arguments.values()
        return next((one for one in values if isinstance(one, tf.data.Iterator)), None)

    def held(self, compiled: Value = None) -> Callable[[], Any]:
        """Return the same with a batch that is held in each of its iterators.

        Args:
            compiled: Called instead of the function; None: it itself.
        """
        args = [_held(value) for value in self.args]
        named = {name: _held(value) for name, value in self.named.items()}
        return lambda: self.run(compiled or self.function, *args, **named)


def in_turns(step: Callable[[], Any], others: Sequence[Callable[[], Any]]) -> Callable[[], None]:
    """Return what calls each once, one after the other."""

    def every() -> None:
        step()
        for one in others:
            one()

    return every


def _held(value: Value) -> Value:
    if not isinstance(value, tf.data.Iterator):
        return value
    return iter(held_dataset(next(value), value.element_spec))
