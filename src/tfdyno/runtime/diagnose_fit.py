"""A call of Keras' ``fit`` looked at in place: with its own data, callbacks and validation."""

from __future__ import annotations

import contextlib
import gc
import types
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf
from keras.src.backend.tensorflow.trainer import TFEpochIterator

from tfdyno.core.errors import UsageError
from tfdyno.runtime.bench_fit import MANY_EPOCHS
from tfdyno.runtime.bench_synthetic import batch_for
from tfdyno.runtime.dataspec import DEFAULT_BATCH
from tfdyno.runtime.diagnose_callbacks import CallbackTimes, ValidationTimes
from tfdyno.runtime.diagnose_files import written_aside
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
from tfdyno.runtime.diagnose_waits import Reading, reading_watched
from tfdyno.runtime.input_options import with_input_options
from tfdyno.runtime.rebatch import rebatched
from tfdyno.runtime.recipe_apply import replicas, settle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.step_facts import OperationFacts, StepFacts
    from tfdyno.runtime.diagnose_clock import StepTimes
    from tfdyno.runtime.diagnose_input import Kind
    from tfdyno.runtime.fit_call import Call

_KINDS: dict[str, Kind] = {
    "TFDatasetAdapter": "dataset", "ArrayDataAdapter": "arrays",
    "GeneratorDataAdapter": "generator", "PyDatasetAdapter": "pydataset",
}  # fmt: skip


def look_at_fit(call: Call, look: Look, times: StepTimes | None = None) -> StepFacts:
    """Train as the call would, without end, until enough was seen; then look at its parts.

    Args:
        call: Of ``fit``, with its arguments.
        look: What is looked at.
        times: The clock, for who wants to know how far it came; None: a new one.

    Raises:
        UsageError: There was no step, or the recipe does not fit the model.
        Exception: Whatever the user's code raises while steps run.
    """
    model = call.model
    notes = [*call.notes, *settle(model, look.recipe, "train")]
    arguments = _arguments(call, look, notes)
    times = times or new_times(look)
    has_data = call.arguments.get("x") is not None
    parts = _Parts(model, times, has_data=has_data)
    watched = parts.run(arguments)
    if not times.steps:
        raise UsageError("the data ended after 0 steps", remedy="see that it gives batches")
    look.progress("looking at the input and the step by themselves")
    rest = parts.rest(arguments)
    subject = Subject(
        title=call.title,
        source="run",
        model=model,
        arguments=arguments,
        batch_size=parts.batch_size,
        replica_count=replicas(model),
        worker_count=_workers(model),
        steps_per_execution=int(model.steps_per_execution),
        steps_per_epoch=parts.steps_per_epoch,
        epochs=int(call.arguments.get("epochs") or 1),
        notes=tuple(notes),
    )
    return step_facts(subject, watched, rest)


def _arguments(call: Call, look: Look, notes: list[str]) -> dict[str, Any]:
    """The call's own, but for the epochs and what the recipe sets of the data."""
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
    return {**arguments, "epochs": MANY_EPOCHS}


class _Marks(keras.callbacks.Callback):
    """Tells the clock of epochs; does nothing at a batch, which would slow the training down."""

    def __init__(self, parts: _Parts) -> None:
        super().__init__()
        self.parts = parts

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ANN401
        self.parts.epoch_begins(epoch)


class _Parts:
    """The training while it runs, and its parts by themselves afterwards."""

    def __init__(self, model: Any, times: StepTimes, *, has_data: bool) -> None:  # noqa: ANN401
        self.model, self.times = model, times
        self.several = int(model.steps_per_execution)
        self.callbacks, self.validation = CallbackTimes(times), ValidationTimes(model)
        self.validation.is_enough = lambda: times.done
        self.iterators: list[Any] = []
        """Keras' own, the training's first."""
        self.position = self.longest = 0
        self.run_step: Any = None
        self.has_data = has_data
        self.batch_size = 0
        """Over all replicas; 0: not known."""

    @property
    def steps_per_epoch(self) -> int:
        """0: not known."""
        iterator = self.iterators[0]
        known = iterator.steps_per_epoch or iterator.data_adapter.num_batches
        if known:
            return int(known)
        return max(self.longest, 0 if self.times.done else self.position)

    def epoch_begins(self, epoch: int) -> None:
        """Count the steps of the one before; data that gave none of them has ended."""
        if epoch and not self.position:
            self.model.stop_training = True
        self.longest, self.position = max(self.longest, self.position), 0
        self.times.epoch()

    def run(self, arguments: dict[str, Any]) -> Watched:
        """The user's own training, until enough was seen or it ends."""
        given = arguments.get("callbacks") or []
        kept = given if isinstance(given, keras.callbacks.CallbackList) else None
        listed = _listed(kept.callbacks if kept else given)
        watched = Watched(self.times, callbacks=listed, model=self.model)
        reading, marks = Reading(self.times.waited), _Marks(self)
        with (
            written_aside(listed),
            self._iterators_kept(),
            reading_watched(reading),
            contextlib.closing(watched),
        ):
            self.callbacks.watch(listed)
            self.validation.watch()
            self._time_steps()
            if kept:
                kept.append(marks)
            else:
                arguments = {**arguments, "callbacks": [*listed, marks]}
            self.model.fit(**arguments)
        return watched

    def rest(self, arguments: dict[str, Any]) -> Rest:
        """The input by itself, and the step on one batch that is held."""
        iterator = self.iterators[0]
        iterator._current_iterator = iterator._epoch_iterator = None  # ends what fills its buffers
        gc.collect()
        adapter, notes = iterator.data_adapter, []
        every = arguments.get("validation_freq") or 1
        if self.validation.was_cut:
            notes.append("Validation was cut short: its time is that of the part that was seen.")
        callbacks = (*self.callbacks.facts(),
                     *self.validation.facts(every if isinstance(every, int) else 1))  # fmt: skip
        said = facts_of(self.model, arguments)
        rest = Rest(callbacks=callbacks, said=said, notes=tuple(notes))
        source = self._source(adapter)
        try:
            facts, batch = looked(source, self.times.limits)
        except (tf.errors.OpError, StopIteration) as error:
            why = f"The input could not be run by itself: {str(error)[:200]}."
            return replace(rest, notes=(*notes, why))
        if batch is None:
            return replace(rest, input=facts, notes=(*notes, "The data has ended."))
        self.batch_size = leading(batch)
        samples = self.steps_per_epoch * self.batch_size
        held_s, operations = self._held(batch, source.dataset, said)
        return replace(
            rest,
            held_s=held_s,
            operations=operations,
            input=replace(facts, samples_per_epoch=samples) if self.has_data else None,
        )

    def _source(self, adapter: Any) -> Source:  # noqa: ANN401
        if getattr(adapter, "_within_epoch", False):
            adapter.on_epoch_end()  # of the epoch that was cut
        return Source(
            dataset=adapter.get_tf_dataset(),
            kind=_KINDS.get(type(adapter).__name__, "other"),
            opening=adapter.on_epoch_begin,
            closing=adapter.on_epoch_end,
        )

    def _held(
        self,
        batch: Any,  # noqa: ANN401
        dataset: Any,  # noqa: ANN401
        said: dict[str, Any],
    ) -> tuple[tuple[float, ...], OperationFacts | None]:
        """The same train function on one batch, and its profile."""
        strategy = self.model.distribute_strategy
        held = held_dataset(batch, dataset.element_spec)
        iterator = iter(strategy.experimental_distribute_dataset(held))

        def call() -> None:
            self.run_step(iterator)

        times = self.times
        held_s = timed_steps(call, times.limits.held_s, count=self.several, sync=times.sync)
        return held_s, profile_of(call, held_s, said, self.several)

    @contextlib.contextmanager
    def _iterators_kept(self) -> Iterator[None]:
        original, kept = TFEpochIterator.__init__, self.iterators

        def made(self: Any, *arguments: Any, **named: Any) -> None:  # noqa: ANN401
            original(self, *arguments, **named)
            kept.append(self)

        TFEpochIterator.__init__ = made
        try:
            yield
        finally:
            TFEpochIterator.__init__ = original

    def _time_steps(self) -> None:
        model, make, times = self.model, self.model.make_train_function, self.times

        def make_timed(force: bool = False) -> None:
            make(force)
            if hasattr(model.train_function, "of_tfdyno"):
                return
            self.run_step = run = model.train_function

            def timed(iterator: Any) -> Any:  # noqa: ANN401
                times.begin()
                logs = run(iterator)
                if times.end(self._count()):
                    model.stop_training = True
                return logs

            timed.of_tfdyno = True  # type: ignore[attr-defined]
            model.train_function = timed

        model.make_train_function = make_timed

    def _count(self) -> int:
        """Steps of a call that has ended: the last one of an epoch may hold fewer."""
        total = self.iterators[0].num_batches if self.several > 1 else 0
        steps = min(self.several, total - self.position) if total else self.several
        self.position += steps
        return max(1, steps)


def _listed(callbacks: Any) -> list[Any]:  # noqa: ANN401
    return list(callbacks) if isinstance(callbacks, list | tuple) else [callbacks]


def _workers(model: Any) -> int:  # noqa: ANN401
    extended = getattr(model.distribute_strategy, "extended", None)
    return max(1, int(getattr(extended, "_num_workers", 1) or 1))
