"""What a look at a training asks for, what it keeps while steps run, and the facts in the end."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import tensorflow as tf

from tfdyno.core.recipe import Recipe
from tfdyno.core.step_facts import (
    CallbackFacts,
    GrowthFacts,
    HostFacts,
    InputFacts,
    OperationFacts,
    RetraceFacts,
    StepFacts,
)
from tfdyno.core.workload import Workload
from tfdyno.model.statistics import median
from tfdyno.runtime.diagnose_clock import Limits, StepTimes, own_steps
from tfdyno.runtime.diagnose_host import HostWatch
from tfdyno.runtime.diagnose_lines import LineSampler
from tfdyno.runtime.diagnose_watch import Watching

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.runtime.diagnose_clock import OwnSteps

Source = Literal["run", "loop"]
PROFILED_S = 1.0
"""So long a profile is at most, in steps of the length that was just measured."""
_TOLD = {each.name for each in dataclasses.fields(StepFacts)}
_MOST_PROFILED, _LEAST_PROFILED = 20, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What is looked at and for how long."""

    workload: Workload
    recipe: Recipe = field(default_factory=Recipe)
    limits: Limits = field(default_factory=Limits)
    progress: Callable[[str], None] = lambda _message: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What was trained."""

    title: str
    source: Source
    model: Any = None
    """A Keras model; None: the loop has none."""
    arguments: dict[str, Any] = field(default_factory=dict)
    """Of ``fit``, or of the loop's step."""
    batch_size: int = 0
    """Over all replicas."""
    replica_count: int = 1
    worker_count: int = 1
    steps_per_execution: int = 1
    steps_per_epoch: int = 0
    epochs: int = 0
    execution: str = ""
    """Empty: as the model says."""
    parameter_count: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """What was seen after the user's own steps; everything may be missing."""

    held_s: tuple[float, ...] = ()
    input: InputFacts | None = None
    operations: OperationFacts | None = None
    callbacks: tuple[CallbackFacts, ...] = ()
    said: dict[str, Any] = field(default_factory=dict)
    """Fields of ``StepFacts`` that the model tells, as ``facts_of`` has them."""
    notes: tuple[str, ...] = ()


class Watched:
    """The watchers of the user's own steps, from the end of warm-up to the last step."""

    def __init__(
        self,
        times: StepTimes,
        *,
        callbacks: Sequence[Any] = (),
        model: Any = None,  # noqa: ANN401
    ) -> None:
        """Wait for the end of warm-up.

        Args:
            times: Tells when that is, and of each step.
            callbacks: Of ``fit``.
            model: A Keras model that is trained, if there is one.
        """
        self.times, self._callbacks, self._model = times, callbacks, model
        self.host: HostFacts | None = None
        self.retraces: tuple[RetraceFacts, ...] = ()
        self.growth: tuple[GrowthFacts, ...] = ()
        self.lines: dict[str, float] = {}
        self._host, self._stack = HostWatch(), contextlib.ExitStack()
        self._watching: Watching | None = None
        self._sampler = LineSampler(lambda: not times.inside)
        times.opening, times.stepped = self._open, self._step

    def close(self) -> None:
        """The last step has ended: keep what the watchers saw."""
        if self.host is not None:
            return
        if self._watching is None:
            self._host.begin()
        self.host = self._host.end()
        self.lines = self._sampler.stop()
        if self._watching is not None:
            self.retraces, self.growth = self._watching.retraces(), self._watching.growth()
        self._stack.close()

    def _open(self) -> None:
        watching = Watching(callbacks=self._callbacks, model=self._model)
        self._watching = self._stack.enter_context(watching)
        self._sampler.start()
        self._host.begin()

    def _step(self) -> None:
        assert self._watching
        self._watching.step()
        if self.times.done:
            self.close()


def new_times(look: Look) -> StepTimes:
    """A clock that waits for a card now and then; a CPU's steps end when their call does."""
    from tfdyno.runtime.reference_speed import synchronise

    has_card = bool(tf.config.list_physical_devices("GPU"))  # opens none of them
    return StepTimes(limits=look.limits, sync=synchronise if has_card else None)


def profile_of(
    run: Callable[[], object], held_s: tuple[float, ...], said: dict[str, Any], count: int = 1
) -> OperationFacts | None:
    """Where the time of the step goes on a batch that is held; None: there is no profile.

    Args:
        run: One call of the step.
        held_s: What a step took.
        said: What the model tells of itself.
        count: Steps in a call.
    """
    from tfdyno.runtime.diagnose_operations import profiled

    step_s = median(held_s) if held_s else PROFILED_S
    wanted = int(PROFILED_S / max(step_s * count, 1e-6))
    calls = max(_LEAST_PROFILED, min(_MOST_PROFILED, wanted))
    names = said.get("float64_names", frozenset())
    found = profiled(lambda _one: run(), calls, names)
    return found if found is None or count == 1 else _shared(found, count)


def _shared(found: OperationFacts, count: int) -> OperationFacts:
    """What a call of several steps took, as each of them."""
    shared: dict[str, Any] = {}
    for each in dataclasses.fields(found):
        value = getattr(found, each.name)
        if isinstance(value, float):
            shared[each.name] = value / count
        elif isinstance(value, dict):
            shared[each.name] = {name: part / count for name, part in value.items()}
    largest = tuple((name, seconds_s / count) for name, seconds_s in found.largest)
    return dataclasses.replace(found, **shared, largest=largest)


def step_facts(subject: Subject, watched: Watched, rest: Rest) -> StepFacts:
    """Everything that one look gave."""
    watched.close()
    assert watched.host
    times = watched.times
    own = own_steps(times)
    said = {name: value for name, value in rest.said.items() if name in _TOLD}
    if subject.execution:
        said["execution"] = subject.execution
    used, limit = _memory()
    per_step = 1 / max(1, sum(step.count for step in times.steps[max(0, times.own_from) :]))
    return StepFacts(
        title=subject.title,
        device="gpu" if tf.config.list_logical_devices("GPU") else "cpu",
        source=subject.source,
        batch_size=subject.batch_size // max(1, subject.replica_count),
        replica_count=subject.replica_count,
        worker_count=subject.worker_count,
        steps_per_execution=subject.steps_per_execution,
        steps_per_epoch=subject.steps_per_epoch,
        epochs=subject.epochs,
        steps_seen=times.step_count,
        step_s=own.step_s,
        held_s=rest.held_s,
        callback_s=own.callback_s,
        python_s=own.python_s,
        waits_s=own.waits_s,
        input=rest.input,
        callbacks=rest.callbacks,
        retraces=watched.retraces,
        growth=watched.growth,
        operations=rest.operations,
        host=watched.host,
        python_lines=tuple(
            (line, seconds_s * per_step)
            for line, seconds_s in sorted(watched.lines.items(), key=lambda item: -item[1])
        )[:5],
        memory_used_bytes=used,
        memory_limit_bytes=limit,
        notes=(*subject.notes, *_early(own, times), *rest.notes),
        **said,
    )


def _early(own: OwnSteps, times: StepTimes) -> tuple[str, ...]:
    if own.is_warm and times.done:
        return ()
    steps = f"{times.step_count:,} step{'s' * (times.step_count != 1)}"
    what = "" if own.is_warm else ", before warm-up was over"
    return (f"The training ended by itself after {steps}{what}.",)


def _memory() -> tuple[int, int]:
    """Bytes in use at most, and that TensorFlow may take; 0, 0 without a card."""
    from tensorflow.python.client import device_lib

    with contextlib.suppress(ValueError, RuntimeError, IndexError):
        used = int(tf.config.experimental.get_memory_info("GPU:0")["peak"])
        limits = [d.memory_limit for d in device_lib.list_local_devices() if d.device_type == "GPU"]
        return used, int(limits[0])
    return 0, 0
