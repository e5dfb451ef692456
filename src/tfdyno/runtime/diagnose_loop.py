"""A training loop of the user's own looked at in place: its step, its reading, its Python."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import tensorflow as tf
from tensorflow.python.data.ops.iterator_ops import OwnedIterator

from tfdyno.core.errors import TfdynoError
from tfdyno.core.measurement import Protocol
from tfdyno.runtime.bench_clock import StepClock
from tfdyno.runtime.bench_fit import Plan
from tfdyno.runtime.bench_loop import LoopBench, LoopDone
from tfdyno.runtime.diagnose_held import held_dataset, leading, timed_steps
from tfdyno.runtime.diagnose_input import Source, looked
from tfdyno.runtime.diagnose_look import (
    Look,
    Rest,
    Subject,
    Watched,
    new_times,
    profile_of,
    step_facts,
)
from tfdyno.runtime.diagnose_model import facts_of
from tfdyno.runtime.diagnose_waits import Reading

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.step_facts import OperationFacts, StepFacts
    from tfdyno.runtime.diagnose_clock import StepTimes


class LoopClock(StepClock):
    """Hands what a bench tells its clock to the one of a look."""

    def __init__(self, times: StepTimes) -> None:
        """Time nothing by itself."""
        super().__init__(least_samples=0, most_s=0.0)
        self.times = times

    @property
    def step_count(self) -> int:
        """Steps that have ended."""
        return self.times.step_count

    def start(self) -> None:
        """The first step begins now."""

    def first(self, seconds_s: float) -> None:
        """The first step took so long and has just ended."""
        self.times.first(seconds_s)

    def steps(self, count: int = 1) -> bool:
        """A step has just ended that is no call of one function."""
        return self.times.end(count)


class LoopLook(LoopBench):
    """Finds the step of a loop as a bench does, and looks at it until enough was seen."""

    def __init__(self, look: Look) -> None:
        """Watch for a step; nothing is found yet."""
        self.times = new_times(look)
        super().__init__(
            Plan(
                workload=look.workload,
                recipe=look.recipe,
                protocol=Protocol(data="own"),
                clock=LoopClock(self.times),
                progress=look.progress,
            )
        )
        self.look, self.watched = look, Watched(self.times)
        self.reading = Reading(self.times.waited)
        self.held_s: tuple[float, ...] = ()
        self.operations: OperationFacts | None = None
        self.notes: list[str] = []
        self.dataset: Any = None
        """What the loop reads; None: it is not known yet."""
        self.arguments: dict[str, Any] = {}
        self._told: dict[str, Any] | None = None
        self._last: Callable[[], Any] | None = None
        self._call: tuple[Any, Callable[..., Any], tuple[Any, ...], dict[str, Any]] | None = None

    def function_called(
        self,
        function: Any,  # noqa: ANN401
        call: Callable[..., Any],
        args: tuple[Any, ...],
        named: dict[str, Any],
    ) -> Any:  # noqa: ANN401
        """Run one call of a ``tf.function``; keep what the step was called with."""
        if not self._active and id(function.python_function) == self._step:
            self._call = (function, call, args, named)
            self.arguments = {str(number): value for number, value in enumerate(args)} | named
        return super().function_called(function, call, args, named)

    def facts(self) -> StepFacts:
        """What was seen when the script has ended, by itself or because it was enough.

        Raises:
            UsageError: Its loop cannot be looked at.
        """
        if self.error:
            raise self.error
        assert self.outcome
        self.watched.close()
        if self._last is not None and not self.times.done:
            self._hold(self._last)  # the script has ended, what its step was called with is kept
        self.look.progress("looking at the input by itself")
        outcome, model, said = self.outcome, self.outcome.model, self._said()
        rest = Rest(
            held_s=self.held_s,
            operations=self.operations,
            said=said,
            notes=tuple(self.notes),
        )
        rest, read = self._with_input(rest)
        samples = rest.input.samples_per_epoch if rest.input else 0
        subject = Subject(
            title=outcome.title,
            source="loop",
            model=model,
            arguments=self.arguments,
            batch_size=outcome.batch_size * outcome.replica_count or read,
            replica_count=outcome.replica_count,
            steps_per_epoch=samples // read if read else 0,
            execution="" if model is not None else str(self.execution),
            notes=outcome.notes,
        )
        return step_facts(subject, self.watched, rest)

    def _said(self) -> dict[str, Any]:
        """What the step tells of itself, asked while the script's variables are still there."""
        if self._told is None:
            model = self.outcome.model if self.outcome else None
            function = self._compiled or self._call[0] if self._call else None
            try:
                self._told = facts_of(model, self.arguments, function=function)
            except Exception as error:  # the script has ended, and with it what the step refers to
                self._told = {}
                self.notes.append(f"The step could not be looked into: {str(error)[:200]}.")
        return self._told

    def _with_input(self, rest: Rest) -> tuple[Rest, int]:
        """What is known of the input too, and the batch over all replicas; 0: not known."""
        dataset = self.dataset or self.reading.dataset
        if not isinstance(dataset, tf.data.Dataset):
            return rest, 0
        gc.collect()  # iterators that the script has left would go on filling their buffers
        try:
            found, batch = looked(Source(dataset=dataset), self.look.limits)
        except tf.errors.OpError as error:
            why = f"The input could not be run by itself: {str(error)[:200]}."
            return replace(rest, notes=(*rest.notes, why)), 0
        size, count = leading(batch), int(dataset.cardinality())
        found = replace(found, samples_per_epoch=max(0, count) * size)
        return replace(rest, input=found), size

    def _timed(self, call: Callable[[], Any]) -> Any:  # noqa: ANN401
        self._last = call
        self.times.begin()
        self._active.append(self._step)
        try:
            result = call()
        finally:
            self._active.pop()
        if self.times.end():
            self._hold(call)
            raise LoopDone
        return result

    def _hold(self, call: Callable[[], Any]) -> None:
        """The same step with what it was called with last, again and again."""
        self.watched.close()
        self._said()
        self.dataset = self.reading.dataset
        self._active.append(self._step)
        try:
            step = self._held_step(call)
            if step is None:
                self.notes.append("The step reads its data itself: it was not run without.")
                return
            self.held_s = timed_steps(step, self.look.limits.held_s, sync=self.times.sync)
            self.operations = profile_of(step, self.held_s, self._said())
        except TfdynoError:
            raise
        except Exception as error:  # a step that cannot be run twice on the same data
            self.notes.append(f"The step could not be repeated: {str(error)[:200]}.")
        finally:
            self._active.pop()

    def _held_step(self, call: Callable[[], Any]) -> Callable[[], Any] | None:
        """The call; where it takes an iterator, with one of a batch that is held."""
        if self._call is None:
            return call
        function, run, args, named = self._call
        values = [*args, *named.values()]
        if any(_is_distributed(value) for value in values):
            return None
        if not any(isinstance(value, OwnedIterator) for value in values):
            return call
        iterator = next(value for value in values if isinstance(value, OwnedIterator))
        self.dataset = self.reading.dataset_of(iterator)
        args = tuple(_held(value) for value in args)
        named = {name: _held(value) for name, value in named.items()}
        return lambda: run(self._compiled or function, *args, **named)


def _held(value: Any) -> Any:  # noqa: ANN401
    if not isinstance(value, OwnedIterator):
        return value
    return iter(held_dataset(next(value), value.element_spec))


def _is_distributed(value: Any) -> bool:  # noqa: ANN401
    from tensorflow.python.distribute.input_lib import DistributedIteratorBase

    return isinstance(value, DistributedIteratorBase)
