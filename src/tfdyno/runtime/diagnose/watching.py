"""What a look at a training asks for, what it keeps while steps run, and the facts in the end."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import tensorflow as tf

from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.units import format_bytes
from tfdyno.core.choose.workload import Workload
from tfdyno.core.measure.software import Backend, DeviceKind
from tfdyno.core.measure.step_facts import (
    CallbackFacts,
    CallFacts,
    GrowthFacts,
    HostFacts,
    InputFacts,
    MemoryCourse,
    OperationFacts,
    RetraceFacts,
    StallFacts,
    StepFacts,
    TimelineFacts,
)
from tfdyno.core.messages.diagnose import Limits
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.model.measure.statistics import median
from tfdyno.process.stop_asked import stop_delayed
from tfdyno.profile.timeline import longest, timeline
from tfdyno.runtime.base.tensorflow_internals import forget_kernels
from tfdyno.runtime.diagnose.clock import StepTimes, even, own_steps
from tfdyno.runtime.diagnose.host import HostWatch
from tfdyno.runtime.diagnose.lines import LineSampler
from tfdyno.runtime.diagnose.so_far import SoFar
from tfdyno.runtime.diagnose.watch import Traces, Watching
from tfdyno.runtime.diagnose.watched_traces import TraceWatch
from tfdyno.runtime.diagnose.work import memory, work_of

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Model
    from tfdyno.runtime.diagnose.clock import OwnSteps

Source = Literal["run", "loop"]
PROFILED_S = 1.0
"""So long a profile is at most, in steps of the length that was just measured."""
_TOLD = {each.name for each in dataclasses.fields(StepFacts)}
_MOST_PROFILED, _LEAST_PROFILED = 20, 3
_WARM_CALLS = 2
_MOST_LINES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsInspection:
    """What is looked at and for how long."""

    workload: Workload
    recipe: Recipe = field(default_factory=Recipe)
    limits: Limits = field(default_factory=Limits)
    progress: Callable[[str], None] = lambda _message: None
    cards: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """What the cards can do by the catalogue, as ``work_of`` takes it; empty: not known."""
    so_far: SoFar = field(default_factory=SoFar)
    """What was seen so far, for a look that ends before its time."""
    backend: Backend = "tensorflow"
    """Of Keras."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What was trained."""

    title: str
    source: Source
    model: Any = None
    """A Keras model; None: the loop has none."""
    batch_size: int = 0
    """Samples over all replicas."""
    replica_count: int = 1
    worker_count: int = 1
    steps_per_execution: int = 1
    steps_per_epoch: int = 0
    epochs: int = 0
    execution: str = ""
    """Empty: as the model says."""
    function: Any = None
    """The step of a loop, if it is a ``tf.function``."""
    cards: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """The cards as ``StepsInspection`` has them."""
    place: Place | None = None
    """Where its steps ran; None: TensorFlow is asked."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What the steps ran on, where that is not TensorFlow."""

    backend: Backend
    device: DeviceKind
    memory_used_bytes: int = 0
    memory_limit_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """What was seen after the user's own steps; everything may be missing."""

    held_s: tuple[float, ...] = ()
    input: InputFacts | None = None
    operations: OperationFacts | None = None
    calls: CallFacts | None = None
    callbacks: tuple[CallbackFacts, ...] = ()
    said: dict[str, Any] = field(default_factory=dict)
    """Fields of ``StepFacts`` that the model tells, as ``facts_of`` has them."""
    end: str = ""
    """``It failed``: why nothing more was seen; empty: the training ended by itself, if it did."""
    notes: tuple[str, ...] = ()


class Watched:
    """The watchers of the user's own steps, from the end of warm-up to the last step."""

    def __init__(
        self,
        times: StepTimes,
        *,
        callbacks: Sequence[Any] = (),
        model: Model = None,
        progress: Callable[[str], None] = lambda _message: None,
        traces: Callable[[Callable[[], str]], Traces] = TraceWatch,
    ) -> None:
        """Wait for the end of warm-up.

        Args:
            times: Tells when that is, and of each step.
            callbacks: Of ``fit``.
            model: A Keras model that is trained, if there is one.
            progress: Called every second with the steps so far, where memory alone is looked at.
            traces: As ``Watching`` takes it.
        """
        self._traces = traces
        self._progress, self._said_s = progress, 0.0
        self.times, self._callbacks, self._model = times, callbacks, model
        self.host: HostFacts | None = None
        self.retraces: tuple[RetraceFacts, ...] = ()
        self.growth: tuple[GrowthFacts, ...] = ()
        self.memory: tuple[MemoryCourse, ...] = ()
        self.traced_s: dict[int, float] = {}
        self.lines: dict[str, float] = {}
        self.texts: dict[str, str] = {}
        self.threads: tuple[tuple[str, float], ...] = ()
        self._host, self._stack = HostWatch(), contextlib.ExitStack()
        self._watching: Watching | None = None
        self._sampler = LineSampler(lambda: not times.inside)
        times.opening, times.stepped = self._open, self._step

    def close(self) -> None:
        """Keep what the watchers saw, as the last step has ended.

        A stop is asked for again where it takes long to come through, as this does on a busy
        machine: what was seen would be lost halfway.
        """
        if self.host is not None:
            return
        with stop_delayed():
            if self._watching is None:
                self._host.begin()
            self.host = self._host.end()
            self.lines, self.threads = self._sampler.stop(), self._sampler.threads
            self.texts = self._sampler.texts
            if self._watching is not None:
                traces, growth = self._watching.traces, self._watching.growth
                self.retraces, self.traced_s = traces.facts(), traces.step_s
                self.growth, self.memory = growth.facts(), growth.memory()
            self._stack.close()

    def _open(self) -> None:
        watching = Watching(
            callbacks=self._callbacks,
            model=self._model,
            callback_now=lambda: self.times.callback,
            memory_alone=self.times.limits.memory_alone,
            traces=self._traces,
        )
        self.times.is_sure = watching.growth.is_sure
        self._watching = self._stack.enter_context(watching)
        self._sampler.start()
        self._host.begin()

    def _step(self) -> None:
        assert self._watching
        self._watching.step()
        growth = self._watching.growth
        if growth.is_slow and not self.times.slowed_from:
            self.times.slowed_from = len(self.times.steps)
        if self.times.limits.memory_alone and time.monotonic() - self._said_s >= 1.0:
            self._said_s = time.monotonic()
            held = format_bytes(growth.resident_bytes)
            self._progress(f"{self.times.step_count:,} steps, the process holds {held}")
        if self.times.done:
            self.close()


def new_times(look: StepsInspection) -> StepTimes:
    """Return a clock that waits for a card now and then; a CPU's steps end when their call does."""
    from tfdyno.runtime.base.reference_speed import synchronise

    has_card = bool(tf.config.list_physical_devices("GPU"))  # opens none of them
    return StepTimes(limits=look.limits, sync=synchronise if has_card else None)


def refuse_few(times: StepTimes) -> None:
    """Refuse what has ended before its second step: the first one compiles, and tells nothing.

    Raises:
        UsageError: There was no step, or one.
    """
    if not times.steps:
        raise UsageError("the data ended after 0 steps", remedy="see that it gives batches")
    if len(times.steps) == 1:
        raise UsageError("the training ended after its first step",
                         why="that one compiles, and tells nothing of the others",
                         remedy="give it more data or more epochs")  # fmt: skip


def profile_of(
    run: Callable[[], object], held_s: tuple[float, ...], said: dict[str, Any], count: int = 1
) -> OperationFacts | None:
    """Say where the step's time goes on a batch that is held; None: there is no profile.

    Args:
        run: One call of the step.
        held_s: What a step took.
        said: What the model tells of itself.
        count: Steps in a call.
    """
    from tfdyno.runtime.diagnose.operations import FRESH_RUNS, profiled

    step_s = median(held_s) if held_s else PROFILED_S
    wanted = int(PROFILED_S / max(step_s * count, 1e-6))
    calls = max(_LEAST_PROFILED, min(_MOST_PROFILED, wanted))
    if not tf.config.list_logical_devices("GPU"):  # a card's own tracer tells every kernel
        forget_kernels()
        for _ in range(_WARM_CALLS):
            run()
        calls = max(1, min(calls, FRESH_RUNS // count - _WARM_CALLS))
    names = said.get("float64_names", frozenset())
    found = profiled(lambda _one: run(), calls, names)
    return found if found is None or count == 1 else shared(found, count)


def shared(found: OperationFacts, count: int) -> OperationFacts:
    """Return what a call of several steps took, as each of them."""
    shared: dict[str, Any] = {}
    for each in dataclasses.fields(found):
        value = getattr(found, each.name)
        if isinstance(value, float):
            shared[each.name] = value / count
        elif isinstance(value, dict):
            shared[each.name] = {name: part / count for name, part in value.items()}
    largest = tuple((name, seconds_s / count) for name, seconds_s in found.largest)
    own_s = tuple(seconds_s / count for seconds_s in found.device_own_s)
    return dataclasses.replace(found, **shared, largest=largest, device_own_s=own_s)


def step_facts(subject: Subject, watched: Watched, rest: Rest) -> StepFacts:
    """Return everything that one look gave."""
    watched.close()
    assert watched.host
    times = watched.times
    own = own_steps(times)
    said = {name: value for name, value in rest.said.items() if name in _TOLD}
    if subject.execution:
        said["execution"] = subject.execution
    place = subject.place or _of_tensorflow()
    if not (subject.place or times.limits.memory_alone):
        said |= work_of(
            subject.model, subject.function, subject.batch_size, str(said.get("precision", "")),
            subject.cards, subject.replica_count,
        )  # fmt: skip
    watched_steps = sum(step.count for step in times.steps[max(0, times.own_from) :])
    per_step = 1 / max(1, watched_steps)
    lines = sorted(watched.lines.items(), key=lambda item: -item[1])[:_MOST_LINES]
    return StepFacts(
        title=subject.title,
        device=place.device,
        source=subject.source,
        backend=place.backend,
        batch_size=subject.batch_size // max(1, subject.replica_count),
        replica_count=subject.replica_count,
        worker_count=subject.worker_count,
        steps_per_execution=subject.steps_per_execution,
        steps_per_epoch=subject.steps_per_epoch,
        epochs=subject.epochs,
        steps_seen=times.step_count,
        steps_watched=watched_steps,
        step_s=own.step_s,
        held_s=rest.held_s,
        calls=rest.calls,
        callback_s=own.callback_s,
        python_s=own.python_s,
        waits_s=own.waits_s,
        input=rest.input,
        callbacks=rest.callbacks,
        retraces=watched.retraces,
        growth=watched.growth,
        memory=watched.memory,
        operations=rest.operations,
        host=_host(watched.host, place),
        python_threads=watched.threads,
        python_lines=tuple((line, seconds_s * per_step) for line, seconds_s in lines),
        python_texts={line: text for line, _ in lines if (text := watched.texts.get(line))},
        worker_step_s=_own_work(subject, rest.operations),
        memory_used_bytes=place.memory_used_bytes,
        memory_limit_bytes=place.memory_limit_bytes,
        timeline=timeline_of(times, watched.traced_s),
        notes=(*subject.notes, *_early(own, times, rest.end), *rest.notes),
        **said,
    )


def _host(seen: HostFacts, place: Place) -> HostFacts:
    """Leave out TensorFlow's limits of threads where it does not compute."""
    is_other = place.backend != "tensorflow"
    return replace(seen, threads_intra=0, threads_inter=0) if is_other else seen


def _of_tensorflow() -> Place:
    used, limit = memory()
    return Place(
        backend="tensorflow",
        device="gpu" if tf.config.list_logical_devices("GPU") else "cpu",
        memory_used_bytes=used,
        memory_limit_bytes=limit,
    )


def _own_work(subject: Subject, operations: OperationFacts | None) -> tuple[float, ...]:
    """Return that of each card of several replicas; nobody waits for other cards."""
    if operations is None or len(operations.device_own_s) != subject.replica_count:
        return ()
    return operations.device_own_s


def _early(own: OwnSteps, times: StepTimes, end: str) -> tuple[str, ...]:
    steps = f"{times.step_count:,} step{'s' * (times.step_count != 1)}"
    if end:
        return (f"{end} after {steps}: what was seen until then is told.",)
    if own.is_warm and times.done:
        return ()
    what = "" if own.is_warm else ", before warm-up was over"
    return (f"The training ended by itself after {steps}{what}.",)


def timeline_of(times: StepTimes, traced_s: Mapping[int, float]) -> TimelineFacts:
    """Return all steps after warm-up; of a training that ended before, all but the first.

    Args:
        times: The clock.
        traced_s: Seconds of tracing by the number of the step, counted from 0 at the end of
            warm-up.
    """
    is_warm = 0 <= times.own_from < len(times.steps)
    start = times.own_from if is_warm else min(1, len(times.steps) - 1)
    steps = times.steps[start:]
    told, number = list[StallFacts](), 1
    for place, (step, mean_s) in enumerate(zip(steps, even(steps), strict=True)):
        retrace_s = traced_s.get(place, 0.0) if is_warm else 0.0
        # Of a loop what Keras validates is time of callbacks as well; of ``fit`` it is not.
        named_s = step.checkpoint_s + (step.validation_s if step.beside_s else 0.0)
        callback_s = max(0.0, step.callback_s - named_s)
        beside_s = step.wait_s + callback_s + step.checkpoint_s + step.validation_s + retrace_s
        told.append(
            StallFacts(
                step=number,
                # What has a known reason was not the device working on behind the host's back.
                whole_s=(step.whole_s if beside_s > mean_s else mean_s) / step.count,
                input_s=step.wait_s / step.count,
                callback_s=callback_s / step.count,
                validation_s=step.validation_s / step.count,
                checkpoint_s=step.checkpoint_s / step.count,
                retrace_s=retrace_s / step.count,
                is_first_of_epoch=step.is_first_of_epoch,
            )
        )
        number += step.count
    whole_s, counts = [one.whole_s for one in told], [step.count for step in steps]
    found = timeline(whole_s, counts, longest(told))
    return replace(found, what="after warm-up") if is_warm else found
