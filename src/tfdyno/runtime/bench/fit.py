"""Keras' own ``fit`` measured: its train function is timed from inside, everything else is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import Workload
from tfdyno.core.measure.measurement import Protocol
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.runtime.base.fit_watcher import FitWatcher
from tfdyno.runtime.base.keras_internals import data_adapter
from tfdyno.runtime.base.replicas import replicas
from tfdyno.runtime.bench import data as bench_data
from tfdyno.runtime.bench.clock import StepClock
from tfdyno.runtime.bench.first_results import CALLS, FirstOf
from tfdyno.runtime.recipe.functions import watch_calls
from tfdyno.runtime.recipe.settle import settle
from tfdyno.runtime.workload.dataspec import DEFAULT_BATCH, DataSpec
from tfdyno.runtime.workload.rebatch import is_arrays, rebatched
from tfdyno.runtime.workload.synthetic import batch_for

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Dataset, Logs, Model, Value
    from tfdyno.runtime.workload.fit_call import Call

MANY_EPOCHS = 1_000_000
LOWER_IS_BETTER = ("loss", "error", "mse", "mae", "perplexity")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is measured and how."""

    workload: Workload
    recipe: Recipe
    protocol: Protocol
    clock: StepClock
    progress: Callable[[str], None]
    first_weights: str = ""
    """File of the weights to begin with; see ``FirstOf``. Empty: the model has its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What is known of a measured call besides its times."""

    model: Any
    title: str
    spec: DataSpec
    batch_size: int
    """Samples of each replica."""
    replica_count: int = 1
    has_pipeline: bool = False
    """As ``BenchTask`` has it."""
    notes: tuple[str, ...] = ()
    metrics: dict[str, float] = field(default_factory=dict)
    seconds_to_target_s: float = 0.0
    data_set: str = ""
    first: FirstOf | None = None
    """Holds what it gave at first; None: it was not asked for."""


def on_jax() -> bool:
    """Return whether Keras computes with JAX."""
    return bool(keras.backend.backend() == "jax")


def prepared(call: Call, plan: Plan) -> tuple[bench_data.Stream, int]:
    """Return the data for a call by the protocol's mode, and the batch over all replicas.

    Raises:
        UsageError: The data, the strategy and the recipe do not go together.
    """
    mode, model = plan.protocol.data, call.model
    wanted = call.batch_size(plan.recipe)
    notes: tuple[str, ...] = ()
    if call.arguments.get("x") is None:
        size = wanted or DEFAULT_BATCH * replicas(model)
        batch, spec = batch_for(model, plan.workload, size)
        if mode == "own":
            notes = (f"{call.title} brings no data: one random batch again and again.",)
    else:
        stream = bench_data.own_stream(call.arguments, wanted, plan.recipe.input)
        if mode in ("own", "real"):
            return stream, wanted or stream.spec.batch_size
        batch, spec, notes = bench_data.first_batch(stream), stream.spec, stream.notes
        size = len(tf.nest.flatten(batch[0])[0])
        batch = bench_data.randomised(batch)
    if plan.workload.mode == "infer":
        batch = batch[:1]
    if mode == "synthetic-device":
        return _on_device(model, batch, spec, notes), size
    arguments = {"x": bench_data.repeated(batch)}
    return bench_data.Stream(arguments=arguments, spec=spec, endless=True, notes=notes), size


def _on_device(
    model: Model,
    batch: tuple[Any, ...],
    spec: DataSpec,
    notes: tuple[str, ...],
) -> bench_data.Stream:
    if replicas(model) > 1:
        what = "--data synthetic-device is for one device"
        raise UsageError(what, remedy="use --data synthetic under tf.distribute")
    give = bench_data.on_device(batch)
    for name in ("train_step", "predict_step"):
        setattr(model, name, _given(getattr(model, name), give))
    return bench_data.Stream(
        arguments={"x": bench_data.ticks()}, spec=spec, endless=True, notes=notes
    )


def _given(step: Callable[[Any], Any], give: Callable[[], Any]) -> Callable[[Any], Any]:
    return lambda _tick: step(give())


def measure_fit(call: Call, plan: Plan) -> Outcome:
    """Train with the call's model until the clock has enough, or for whole epochs.

    Raises:
        UsageError: The data ended too early, or the target's metric does not exist.
    """
    model, clock = call.model, plan.clock
    call, in_order = _in_order(call, plan)
    notes = (*call.notes, *settle(model, plan.recipe, "train"), *in_order)
    stream, size = prepared(call, plan)
    first, stream = _first(model, stream, plan)
    by_epochs = bool(plan.protocol.epochs or plan.protocol.target_metric)
    if by_epochs:
        arguments = _whole_epochs(call, plan, stream, size)
        left_out: tuple[str, ...] = ()
    else:
        arguments = {**stream.arguments, "epochs": 1 if stream.endless else MANY_EPOCHS}
        left_out = _left_out(call.arguments)
    marks = _Marks(plan)
    arguments["callbacks"] = [*_listed(arguments.get("callbacks")), marks]
    _time_steps(model, clock, marks, first, endless=stream.endless and not by_epochs)
    clock.start()
    history = model.fit(**arguments, verbose=0)
    if not (clock.done or by_epochs or marks.stopped):
        raise too_short(clock)
    real = plan.protocol.data in ("own", "real") and call.arguments.get("x") is not None
    return Outcome(
        model=model,
        title=call.title,
        spec=stream.spec,
        batch_size=size // replicas(model),
        replica_count=replicas(model),
        has_pipeline=stream.has_pipeline,
        notes=(*notes, *stream.notes, *left_out),
        metrics=_last(history.history) if by_epochs and real else {},
        seconds_to_target_s=marks.seconds_to_target_s,
        data_set=call.data_set,
        first=first,
    )


def _in_order(call: Call, plan: Plan) -> tuple[Call, tuple[str, ...]]:
    """Leave arrays in their order where two backends are to read the same batches.

    Each draws the order of arrays by random numbers of its own; a shuffle of tf.data does not.
    """
    x = call.arguments.get("x")
    if not plan.first_weights or x is None or not is_arrays(x):
        return call, ()
    told = ("Arrays are read in their order, so that both backends get the same batches.",)
    shuffles = plan.protocol.data == "own" and call.arguments.get("shuffle", True)
    return replace(call, arguments={**call.arguments, "shuffle": False}), told * bool(shuffles)


def _first(
    model: Model, stream: bench_data.Stream, plan: Plan
) -> tuple[FirstOf | None, bench_data.Stream]:
    """Return what keeps the first results where that is asked for, and the stream as it was."""
    if not plan.first_weights:
        return None, stream
    batch, stream = bench_data.peeked(stream)
    return FirstOf(model, batch, Path(plan.first_weights)), stream


def too_short(clock: StepClock) -> UsageError:
    """Say that the data ended before the steady state held enough samples."""
    return UsageError(
        f"the data ended after {clock.step_count} steps",
        why=f"{clock.least_samples} samples of the steady state are needed",
        remedy="repeat it, or use --data synthetic",
    )


def _listed(callbacks: Value) -> list[Any]:
    return list(callbacks) if isinstance(callbacks, list | tuple) else [callbacks] * bool(callbacks)


def _last(history: dict[str, list[Any]]) -> dict[str, float]:
    return {name: float(values[-1]) for name, values in history.items() if values}


def _left_out(arguments: dict[str, Any]) -> tuple[str, ...]:
    """Return what a fair measurement of steps does without, as a sentence."""
    names = ("callbacks", "validation_data", "validation_split")
    given = [name for name in names if arguments.get(name)]
    return (f"Left out of fit: {', '.join(given)}.",) if given else ()


def _whole_epochs(call: Call, plan: Plan, stream: bench_data.Stream, size: int) -> dict[str, Any]:
    """Return the arguments of ``fit`` for epochs: the user's own, but for what the recipe sets."""
    protocol = plan.protocol
    own = protocol.data in ("own", "real") and call.arguments.get("x") is not None
    wanted = call.batch_size(plan.recipe)
    arguments = {**rebatched(call.arguments, wanted)[0]} if own else {}
    if not own:
        steps = (stream.spec.samples_per_epoch or 0) // max(1, size)
        if not steps:
            what = f"{call.title} has no epochs"
            raise UsageError(what, why="its data has no known length", remedy="leave --epochs out")
        arguments = {**stream.arguments, "steps_per_epoch": steps}
    own_epochs = int(call.arguments.get("epochs") or 1)
    arguments["epochs"] = protocol.epochs or max(own_epochs, 1)
    return {name: value for name, value in arguments.items() if name != "verbose"}


class _Marks(FitWatcher):
    """Tells the clock of epochs, and stops at the target."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan, self.stopped, self.seconds_to_target_s = plan, False, 0.0

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        self.position = 0
        if epoch:
            self.plan.clock.epoch()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        protocol, spent_s = self.plan.protocol, self.plan.clock.running_s
        if protocol.epochs or protocol.target_metric:
            said = ", ".join(f"{k} {float(v):.4g}" for k, v in (logs or {}).items())
            self.plan.progress(f"epoch {epoch + 1}: {said}, {spent_s:.1f} s")
        if not protocol.target_metric:
            return
        if protocol.target_metric not in (logs or {}):
            what = f"training has no metric {protocol.target_metric!r}"
            raise UsageError(what, remedy=f"name one of {', '.join(logs or {})}")
        if _reached(protocol, float((logs or {})[protocol.target_metric])):
            self.seconds_to_target_s = spent_s
            self.stopped = self.model.stop_training = True
        elif not protocol.epochs and spent_s > protocol.most_s:
            self.stopped = self.model.stop_training = True


def _reached(protocol: Protocol, value: float) -> bool:
    lower = any(word in protocol.target_metric for word in LOWER_IS_BETTER)
    return value <= protocol.target_value if lower else value >= protocol.target_value


def _time_steps(
    model: Model, clock: StepClock, marks: _Marks, first: FirstOf | None, *, endless: bool
) -> None:
    """Tell the clock after every call of the train function, and stop when it has enough."""
    several = int(model.steps_per_execution)
    told = _told_first(first, several)
    given: Callable[[Any], Any] = lambda result: result  # noqa: E731
    if is_jax := on_jax():
        from tfdyno.runtime.bench.on_jax import waited_for

        given = partial(waited_for, clock)

    def watched(run: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*taken: Any) -> Value:
            """Take what the backend's train function does: an iterator; on JAX a state before."""
            result = given(run(*taken))
            total = None if endless else (marks.params or {}).get("steps")
            if clock.steps(marks.count_steps(several, total)):
                model.stop_training = True
            if marks.position == total:
                clock.cut()
            told(result[0] if is_jax else result)
            return result

        return timed

    watch_calls(model, "train", watched)


def _told_first(first: FirstOf | None, several: int) -> Callable[[Any], None]:
    """Return what takes the logs of each call; it reads those of the first few."""
    if first is None:
        return lambda _logs: None
    places = iter(range(1, CALLS + 1))

    def told(logs: Logs) -> None:
        if place := next(places, 0):
            first.stepped(place * several, logs)

    return told


def measure_predict(call: Call, plan: Plan) -> Outcome:
    """Run the model forward as ``predict`` does, but for keeping what it returns.

    Raises:
        UsageError: The data ended too early.
    """
    model, clock = call.model, plan.clock
    notes = (*call.notes, *settle(model, plan.recipe, "infer"))
    kept = {name: call.arguments.get(name) for name in ("x", "batch_size")}
    stream, size = prepared(replace(call, arguments={**kept, "shuffle": False}), plan)
    first, stream = _first(model, stream, plan)
    gave = first.gave if first else lambda _outputs: None
    if on_jax():
        from tfdyno.runtime.bench.on_jax import forward

        is_enough = forward(model, stream.arguments["x"], clock, gave)
    else:
        is_enough = _forward(model, _dataset(stream), clock, gave)
    if not is_enough:
        raise too_short(clock)
    return Outcome(
        model=model,
        title=call.title,
        spec=stream.spec,
        batch_size=size // replicas(model),
        replica_count=replicas(model),
        notes=(*notes, *stream.notes, "What predict returns is not kept."),
        data_set=call.data_set,
        first=first,
    )


def _forward(model: Model, dataset: Dataset, clock: StepClock, gave: Callable[[Any], None]) -> bool:
    """Run the predict function until the clock has enough; returns whether it was."""
    if replicas(model) > 1:
        dataset = model.distribute_strategy.experimental_distribute_dataset(dataset)
    model.make_predict_function()
    run, several = model.predict_function, int(model.steps_per_execution)
    clock.start()
    iterator = iter(dataset)
    try:
        outputs = run([next(iterator) for _ in range(several)])
        is_enough = clock.steps(several)
        gave(outputs)
        del outputs
        while not is_enough:
            run([next(iterator) for _ in range(several)])
            is_enough = clock.steps(several)
    except (StopIteration, tf.errors.OutOfRangeError):
        return False
    return True


def _dataset(stream: bench_data.Stream) -> Dataset:
    x = stream.arguments["x"]
    if isinstance(x, tf.data.Dataset):
        return x
    return data_adapter(x).get_tf_dataset()
