"""A call of Keras' ``fit`` looked at in place: with its own data, callbacks and validation."""

from __future__ import annotations

import contextlib
import gc
import math
import types
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from tfdyno.core.base.errors import TfdynoError
from tfdyno.runtime.base.fit_watcher import FitWatcher
from tfdyno.runtime.base.keras_internals import epoch_iterators_seen
from tfdyno.runtime.base.replicas import replicas, worker_count
from tfdyno.runtime.base.written_files import written_aside
from tfdyno.runtime.bench.fit import MANY_EPOCHS
from tfdyno.runtime.diagnose.callbacks import CallbackTimes, ValidationTimes, in_each_step
from tfdyno.runtime.diagnose.clock import holds_epochs
from tfdyno.runtime.diagnose.held import (
    SEVERAL_WORKERS,
    held_dataset,
    leading,
    not_repeated,
    timed_steps,
)
from tfdyno.runtime.diagnose.input import Source, by_itself, kind_of
from tfdyno.runtime.diagnose.look.calls import in_turns, worth_a_look
from tfdyno.runtime.diagnose.model import facts_of
from tfdyno.runtime.diagnose.waits import Reading, reading_watched
from tfdyno.runtime.diagnose.watching import (
    Place,
    Rest,
    StepsInspection,
    Subject,
    Watched,
    new_times,
    profile_of,
    refuse_few,
    step_facts,
)
from tfdyno.runtime.recipe.functions import watch_calls
from tfdyno.runtime.recipe.settle import settle
from tfdyno.runtime.workload.dataspec import DEFAULT_BATCH
from tfdyno.runtime.workload.input_options import with_input_options
from tfdyno.runtime.workload.rebatch import rebatched
from tfdyno.runtime.workload.synthetic import batch_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from tfdyno.core.base.untyped import Batch, DataIterator, Dataset, Logs, Model, Value
    from tfdyno.core.measure.step_facts import CallFacts, InputFacts, StepFacts
    from tfdyno.runtime.diagnose.clock import StepTimes
    from tfdyno.runtime.workload.fit_call import Call


def look_at_fit(
    call: Call,
    look: StepsInspection,
    times: StepTimes | None = None,
    parts_of: Callable[[Call, StepTimes], Parts] | None = None,
) -> StepFacts:
    """Train as the call would, without end, until enough was seen; then look at its parts.

    Args:
        call: Of ``fit``, with its arguments.
        look: What is looked at.
        times: The clock, for who wants to know how far it came; None: a new one.
        parts_of: Makes the parts; None: those of TensorFlow.

    Raises:
        UsageError: There was no step, or the recipe does not fit the model.
        Exception: Whatever the user's code raises while steps run.
    """
    model = call.model
    notes = [*call.notes, *settle(model, look.recipe, "train")]
    arguments = _arguments(call, look, notes)
    times = times or new_times(look)
    parts = (parts_of or Parts)(call, times)

    def told(rest: Rest) -> StepFacts:
        subject = Subject(
            title=call.title,
            source="run",
            model=model,
            batch_size=parts.batch_size,
            replica_count=replicas(model),
            worker_count=_workers_of(model),
            steps_per_execution=int(model.steps_per_execution),
            steps_per_epoch=parts.steps_per_epoch,
            epochs=parts.epochs.count,
            place=parts.place(),
            notes=tuple(notes),
        )
        return step_facts(subject, parts.watched, rest)

    look.so_far.begin(times, lambda end: told(parts.seen(arguments, end)))
    parts.run(arguments, look.progress)
    refuse_few(times)
    if look.limits.memory_alone:
        return told(parts.seen(arguments))
    look.progress("looking at the input and the step by themselves")
    return told(parts.rest(arguments))


def _arguments(call: Call, look: StepsInspection, notes: list[str]) -> dict[str, Any]:
    """Return the call's own, but for the epochs and what the recipe sets of the data."""
    wanted = call.batch_size(look.recipe)
    arguments = dict(call.arguments)
    if arguments.get("x") is None:
        size = wanted or DEFAULT_BATCH * replicas(call.model)
        batch, _ = batch_for(call.model, look.workload, size)
        arguments["x"] = held_dataset(batch)
        notes.append(f"{call.title} brings no data: one random batch again and again.")
    elif wanted:
        arguments, said = rebatched(arguments, wanted, whole_only=False)
        notes.extend(said)
    if isinstance(arguments["x"], tf.data.Dataset):
        arguments["x"], said = with_input_options(arguments["x"], look.recipe.input)
        notes.extend(said)
    is_once = isinstance(arguments["x"], types.GeneratorType)
    if is_once and not arguments.get("steps_per_epoch"):
        return arguments  # Keras would go on with the few batches that it keeps of it
    if _workers_of(call.model) > 1:
        return arguments  # a worker that went on would wait for the others for ever
    return {**arguments, "epochs": MANY_EPOCHS}


def _workers_of(model: Model) -> int:
    return worker_count(getattr(model, "distribute_strategy", None))


def workers(adapter: Value) -> int:
    """Count a PyDataset's workers that make batches ahead; 0: it does not."""
    has_queue = getattr(adapter, "enqueuer", None) is not None
    return max(1, int(adapter.py_dataset.workers)) if has_queue else 0


class Parts:
    """The training while it runs, and its parts by themselves afterwards."""

    def __init__(self, call: Call, times: StepTimes) -> None:
        self.model, self.times = call.model, times
        self.several = int(self.model.steps_per_execution)
        self.watched = Watched(times)
        first, last = (int(call.arguments.get(name) or 0) for name in ("initial_epoch", "epochs"))
        self.epochs = Epochs(times, first=first, last=last or 1)
        self.callbacks = CallbackTimes(
            times, number=self.epochs.number, after_step=self.epochs.keep_going
        )
        self.validation = ValidationTimes(self.model, told=times.validated)
        self.validation.is_enough = lambda: times.done
        self.iterator: Any = None
        """Keras' own, over the data of the training."""
        self.run_step: Any = None
        self.has_data = call.arguments.get("x") is not None
        self.batch_size = 0
        """Over all replicas; 0: not known."""

    @property
    def steps_per_epoch(self) -> int:
        """0: not known."""
        iterator = self.iterator
        known = iterator.steps_per_epoch or iterator.data_adapter.num_batches
        if known:
            return int(known)
        epochs = self.epochs
        return max(epochs.longest, 0 if self.times.done else epochs.position)

    def run(self, arguments: dict[str, Any], progress: Callable[[str], None]) -> None:
        """Run the user's own training, until enough was seen or it ends."""
        given = arguments.get("callbacks") or []
        kept = given if isinstance(given, keras.callbacks.CallbackList) else None
        listed = keras.tree.flatten(kept.callbacks if kept else given)
        self.watched = watched = self._watching(listed, progress)
        with (
            written_aside(listed),
            epoch_iterators_seen(self._keep),
            self._reading(),
            contextlib.closing(watched),
        ):
            self.callbacks.watch(listed)
            self.validation.watch()
            watch_calls(self.model, "train", self._time_steps)
            if kept:
                self.epochs.set_model(self.model)
                kept.callbacks.append(self.epochs)
            else:
                arguments = {**arguments, "callbacks": [*listed, self.epochs]}
            self.model.fit(**arguments)

    def place(self) -> Place | None:
        """Return where the steps ran; None: TensorFlow is asked."""
        return None

    def _watching(self, callbacks: list[Any], progress: Callable[[str], None]) -> Watched:
        return Watched(self.times, callbacks=callbacks, model=self.model, progress=progress)

    def _reading(self) -> AbstractContextManager[None]:
        """Time what is read, until the block ends."""
        return reading_watched(Reading(self._waited))

    def _said(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return what the model tells of itself."""
        # Keras turns arrays and tensors into its own float; a dataset reaches the step as it is.
        x = arguments["x"]
        return facts_of(self.model, {"x": x} if isinstance(x, tf.data.Dataset) else None)

    def _waited(self, seconds_s: float) -> None:
        """Leave out what a callback or a validation reads, which is in their own time already."""
        if self.times.inside:
            self.times.waited(seconds_s)

    def seen(self, arguments: dict[str, Any], end: str = "") -> Rest:
        """Return what was seen of the training itself; runs nothing."""
        notes = (*self.epochs.notes, *self.validation.notes)
        every = arguments.get("validation_freq") or 1
        callbacks = (*self.callbacks.facts(),
                     *self.validation.facts(every if isinstance(every, int) else 1))  # fmt: skip
        if holds_epochs(self.times):
            callbacks = in_each_step(callbacks, max(1, self.steps_per_epoch))
        self.batch_size = int(getattr(self.iterator.data_adapter, "batch_size", 0) or 0)
        said = self._said(arguments)
        return Rest(callbacks=callbacks, said=said, end=end, notes=notes)

    def rest(self, arguments: dict[str, Any]) -> Rest:
        """Look at the input by itself, and at the step on one batch that is held."""
        rest = self.seen(arguments)
        said, notes = rest.said, rest.notes
        iterator = self.iterator
        iterator._current_iterator = iterator._epoch_iterator = None  # ends what fills its buffers
        gc.collect()
        source = self._source(iterator.data_adapter)
        facts, batch, why = self._by_itself(source)
        if facts is None:
            return replace(rest, notes=(*notes, why))
        if batch is None:
            return replace(rest, input=facts, notes=(*notes, "The data has ended."))
        self.batch_size = leading(batch)
        if facts.kind == "generator" and not self.times.done:  # Keras keeps its first batches
            notes = (*notes, "The generator has ended: it was not run by itself.")
        elif self.has_data:
            samples = self.steps_per_epoch * self.batch_size
            start_s = 0.0 if self._goes_on else facts.start_s
            rest = replace(rest, input=replace(facts, samples_per_epoch=samples, start_s=start_s))
        if _workers_of(self.model) > 1:
            return replace(rest, notes=(*notes, SEVERAL_WORKERS))
        rest = replace(rest, notes=notes)
        try:
            held = self._held(batch, source.dataset, said)
        except TfdynoError:
            raise
        except Exception as error:  # a step that cannot be run twice on the same data
            return replace(rest, notes=(*notes, not_repeated(error)))
        return replace(rest, **held)

    def _by_itself(self, source: Source) -> tuple[InputFacts | None, Any, str]:
        """Return what the input takes by itself and a batch; or nothing, and why not."""
        return by_itself(source, self.times.limits)

    @property
    def _goes_on(self) -> bool:
        """Whether an epoch goes on where the one before left the data."""
        steps = self.iterator.steps_per_epoch or 0
        batches = self.iterator.data_adapter.num_batches or math.inf
        return bool(0 < steps < batches)

    def _source(self, adapter: Value) -> Source:
        if getattr(adapter, "_within_epoch", False):
            adapter.on_epoch_end()  # of the epoch that was cut
        return Source(
            dataset=adapter.get_tf_dataset(),
            kind=kind_of(adapter),
            workers=workers(adapter),
            opening=adapter.on_epoch_begin,
            closing=adapter.on_epoch_end,
        )

    def _held(
        self,
        batch: Batch,
        dataset: Dataset,
        said: dict[str, Any],
    ) -> dict[str, Any]:
        """Run the same train function on one batch, its profile, and its steps in fewer calls."""
        strategy = self.model.distribute_strategy
        held = held_dataset(batch, dataset.element_spec)
        iterator = iter(strategy.experimental_distribute_dataset(held))

        def call() -> None:
            self.run_step(iterator)

        times = self.times
        held_s = timed_steps(call, times.limits.held_s, count=self.several, sync=times.sync)
        calls = self._calls(iterator, held_s)  # before a profile lets TensorFlow learn anew
        operations = profile_of(call, held_s, said, self.several)
        return {"held_s": held_s, "calls": calls, "operations": operations}

    def _calls(self, iterator: DataIterator, held_s: tuple[float, ...]) -> CallFacts | None:
        """Return None where they would tell nothing, or cannot be run."""
        model, times = self.model, self.times
        if replicas(model) > 1 or not worth_a_look(model, held_s, times.steps[0].call_s):
            return None
        with contextlib.suppress(Exception):  # of what cannot stand in a loop of TensorFlow's
            return in_turns(model, self.run_step, iterator, sync=times.sync)
        return None

    def _keep(self, iterator: DataIterator) -> None:
        if self.iterator is None:  # later ones are of validation and of callbacks
            self.iterator = iterator

    def _time_steps(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """Return the train function with the clock around it, which ends the training."""
        self.run_step, times = run, self.times

        def timed(*taken: Any) -> Value:
            """Take what the backend's train function does: an iterator; on JAX a state before."""
            times.begin()
            try:
                gave = self._called(run, *taken)
            except BaseException:  # at the end of data whose length is not known
                times.drop()
                raise
            total = self.iterator.num_batches if self.several > 1 else None
            if times.end(self.epochs.count_steps(self.several, total)):
                self.model.stop_training = True
            return gave

        return timed

    def _called(self, run: Callable[..., Any], *taken: Any) -> Value:
        """Run one call of the train function."""
        return run(*taken)


class Epochs(FitWatcher):
    """Behind the user's callbacks: counts the steps of each epoch, and keeps the training going."""

    def __init__(self, times: StepTimes, *, first: int = 0, last: int = 1) -> None:
        """Begin before any epoch.

        Args:
            times: The clock, which is told of each epoch.
            first: The number of the first one, as ``fit`` was given it.
            last: The number behind the last one, likewise.
        """
        super().__init__()
        self.times, self.first, self.last = times, first, last
        self.longest = 0
        """Steps of the longest one before."""
        self.asked_at = 0
        """Steps after which a callback first asked for the end; 0: none did."""
        self._has_begun = self._has_ended = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done otherwise than the training would."""
        if not self.asked_at:
            return ()
        steps = f"{self.asked_at:,} step{'s' * (self.asked_at != 1)}"
        return (f"A callback asked for the end after {steps}; the training was kept going.",)

    @property
    def count(self) -> int:
        """The number of the user's own epochs."""
        return max(0, self.last - self.first)

    def number(self, epoch: int) -> int:
        """Return the user's own epochs again and again: what looks up their number finds it."""
        return self.first + (epoch - self.first) % self.count if self.count else epoch

    def set_params(self, params: dict[str, Any]) -> None:
        """Take the ``params`` that Keras gives to all callbacks."""
        super().set_params(params)
        if params and "epochs" in params:
            params["epochs"] = self.last

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Begin an epoch. Data that gave nothing in the epoch before has ended."""
        if self._has_begun and not self.position:
            self._has_ended = self.model.stop_training = True
        self._has_begun = True
        self.longest, self.position = max(self.longest, self.position), 0
        self.times.epoch()

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """End an epoch. Who stops early has seen data that were repeated for the look."""
        self.keep_going()

    def keep_going(self) -> None:
        """Put off the end that a callback of the user's asks for, and note it."""
        if self.model.stop_training and not (self.times.done or self._has_ended):
            self.model.stop_training = False
            self.asked_at = self.asked_at or self.times.step_count
