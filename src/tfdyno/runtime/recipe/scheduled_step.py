"""The steps of a Keras model, run by the workers of a parameter server cluster.

Under ``ParameterServerStrategy`` all variables lie on the parameter servers and every worker runs
whole steps by itself, as fast as it can: the step of a worker is that of one device. Counters,
metrics and random states come out right whatever happens at the same moment (``shared_state``).
Moving averages of ``BatchNormalization`` and the factor of ``LossScaleOptimizer`` are written as
Keras does: the last worker wins, and what it writes is a valid value.

The chief reads the data, in the order that Keras has, and sends each batch with its step. So an
epoch sees every sample once, any source of data will do, a step whose worker died is done by
another with the same batch, and the place in the data is known exactly.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.base.tensorflow_internals import outside_scope
from tfdyno.runtime.recipe.build import build_for
from tfdyno.runtime.recipe.shared_state import (
    SEED_STRIDE,
    Apart,
    added_at_once,
    metric_variables,
    seed_states,
)
from tfdyno.runtime.recipe.steps_under_way import StepsUnderWay

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import DataIterator, Model, Spec, Strategy, Value

PER_WORKER = 2
"""Steps under way for each worker: one that runs and one that waits."""
_TAKEN = "_tfdyno_steps"

Batch = Any
Logs = dict[str, Any]


class ScheduledSteps:
    """Takes a model over: its ``fit`` and ``evaluate`` then run on the workers.

    For Keras the model has no strategy then: ``predict`` and ``save`` run on the chief, which reads
    the variables from the servers. ``fit`` must be called outside of the strategy's scope
    (``outside_scope``).

    Attributes:
        batch_count: Batches of training that were given to the workers since the beginning.
    """

    def __init__(self, model: Model, strategy: Strategy) -> None:
        """Replace the functions that Keras' loops call.

        Args:
            model: Made and compiled in the scope of the strategy; need not be built.
            strategy: Of ``parameter_server.make_strategy``.

        Raises:
            UsageError: The model was not made in the scope of the strategy, or a worker has more
                than one GPU.
        """
        if earlier := getattr(model, _TAKEN, None):
            earlier.give_back()
        _check(model, strategy)
        self.model, self.strategy = model, strategy
        inner = getattr(model.optimizer, "inner_optimizer", model.optimizer)
        self._inner, self._every = inner, inner.ema_overwrite_frequency
        inner.ema_overwrite_frequency = None  # done here: Keras' own way branches in a replica
        with outside_scope():  # it belongs to the chief
            self.batch_count = tf.Variable(0, dtype=tf.int64, trainable=False, name="batches")
        self.under_way = StepsUnderWay(
            tf.distribute.coordinator.ClusterCoordinator(strategy),
            strategy._cluster_resolver.cluster_spec().as_dict(),
            PER_WORKER,
        )
        self._result, self._reset = model.get_metrics_result, model.reset_metrics
        self._read = _in_graph(self._result)
        self._names: dict[str, list[str]] = {}
        self._is_built, self._is_first = False, True
        self._take_over()

    def build(self, element_spec: Spec) -> None:
        """Make all variables on the servers; else the first batch does.

        Args:
            element_spec: Of the dataset: (x,), (x, y) or (x, y, sample_weight), batched.
        """
        with self.strategy.scope():
            build_for(self.model, element_spec)
        self._is_built = True

    @property
    def variables(self) -> list[Any]:
        """What belongs to a checkpoint beside the model and its optimizer; ``join`` before."""
        return [self.batch_count]

    def train_function(self) -> Callable[[Any], Logs]:
        """Return what Keras' ``fit`` calls with the iterator of an epoch.

        It gives the next batches to the workers and returns the logs of what is done by then; the
        last ``PER_WORKER`` steps of each worker may not be. The first of an epoch is waited for.
        It raises ``ToolError`` when the cluster broke down, and what the user's code raises.
        """
        step = _in_graph(self._train_batches)

        def run(iterator: DataIterator) -> Logs:
            batches = self._next_batches(iterator)
            count = int(self.batch_count.numpy())
            due = [bool(self._every) and (count + n + 1) % self._every == 0
                   for n in range(len(batches))]  # fmt: skip
            logs = self._given("train", step, (batches, tf.constant(due)))
            self.batch_count.assign_add(len(batches))
            return logs

        return run

    def test_function(self) -> Callable[[Any], Logs]:
        """Return what Keras' ``evaluate`` calls: as ``train_function``."""
        step = _in_graph(self._test_batches)
        return lambda iterator: self._given("test", step, (self._next_batches(iterator),))

    def join(self) -> None:
        """Wait until all steps are done: the variables are at rest then, as a checkpoint needs."""
        self.under_way.join()

    def give_back(self) -> None:
        """Leave the model as it was."""
        self.join()
        for name in self._replaced:
            self.model.__dict__.pop(name, None)
        self.model._distribute_strategy = self.strategy
        self.model.train_function = self.model.test_function = None
        self._inner.ema_overwrite_frequency = self._every

    def _take_over(self) -> None:
        model = self.model
        model._distribute_strategy = None
        self._replaced: dict[str, Any] = {
            "make_train_function": self._maker("train_function"),
            "make_test_function": self._maker("test_function"),
            "evaluate": _outside(model.evaluate),
            "predict": _outside(model.predict),
            "reset_metrics": self._reset_metrics,
            "get_metrics_result": self._metrics_result,
            _TAKEN: self,
        }
        model.__dict__.update(self._replaced)  # Keras is to track none of it
        model.train_function = model.test_function = model.predict_function = None

    def _maker(self, name: str) -> Callable[..., None]:
        def make(force: bool = False) -> None:
            if force or getattr(self.model, name) is None:
                setattr(self.model, name, getattr(self, name)())

        return make

    def _next_batches(self, iterator: DataIterator) -> tuple[Batch, ...]:
        batches: list[Batch] = []
        for _ in range(self.model.steps_per_execution):
            try:
                batch = next(iterator)
            except (StopIteration, tf.errors.OutOfRangeError):
                if not batches:
                    raise
                break
            batches.append(tf.nest.map_structure(_none_if_optional, batch))
        if not self._is_built:
            self.build(batches[0])
        return tuple(batches)

    def _given(self, kind: str, step: Value, arguments: tuple[Any, ...]) -> Logs:
        self.under_way.add(step, arguments)
        if self._is_first:  # of an epoch: there is nothing to tell before it is done
            self.join()
            self._is_first = False
        names, value = self._names[kind], self.under_way.last_value
        return dict(zip(names, value, strict=True)) if names else dict(value)

    def _reset_metrics(self) -> None:
        if not tf.inside_function():
            self.join()
            self._is_first = True
        self._reset()

    def _metrics_result(self) -> Logs:
        if tf.inside_function():
            return self._result()
        self.join()
        return dict(self._read())

    # On a worker, in a graph

    def _train_batches(self, batches: tuple[Batch, ...], due: Value) -> Value:
        logs: Logs = {}
        for number, batch in enumerate(batches):
            logs = self.strategy.run(self._replica, args=(self.model.train_step, batch))
            if self._every and self._inner.use_ema:
                # Averages are zeros before the first update, which float16 may have left out.
                ready = tf.logical_and(due[number], self._inner.iterations._value > 0)
                tf.cond(ready, self._overwrite_by_average, lambda: tf.constant(0))
        return self._packed("train", logs)

    def _test_batches(self, batches: tuple[Batch, ...]) -> Value:
        logs: Logs = {}
        for batch in batches:
            logs = self.strategy.run(self._replica, args=(self.model.test_step, batch))
        return self._packed("test", logs)

    def _replica(self, step: Callable[[Batch], Logs], batch: Batch) -> Logs:
        sums = [(v, tf.zeros(v.shape, v._value.dtype)) for v in metric_variables(self.model)]
        seeds = [
            (v, tf.convert_to_tensor(v._value) + _worker_offset(v._value.dtype))
            for v in seed_states(self.model)
        ]
        with added_at_once(), Apart([*sums, *seeds]) as scope:
            logs = step(batch)
        scope.add_differences()
        return logs

    def _packed(self, kind: str, logs: Logs) -> Value:
        """Return the logs as they go to the chief: one message instead of one for each number.

        Keras' rule: logs that have the names of the model's metrics are those of all that was done
        since the beginning of the epoch, others are those of the last step.
        """
        so_far = self._result()
        logs = so_far if set(so_far) == set(logs) else logs
        are_numbers = all(_is_number(value) for value in logs.values())
        self._names[kind] = list(logs) if are_numbers else []
        return tf.stack([tf.cast(v, tf.float32) for v in logs.values()]) if are_numbers else logs

    def _overwrite_by_average(self) -> Value:
        averages = self._inner._model_variables_moving_average
        for variable, average in zip(self._inner._trainable_variables, averages, strict=True):
            with tf.device(average._value.device):
                variable._value.assign(average._value.read_value())
        return tf.constant(0)


def _outside(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Value:
        with outside_scope():
            return function(*args, **options)

    return call


def _in_graph(function: Callable[..., Any]) -> Value:
    return tf.function(function, autograph=False, reduce_retracing=True)


def _check(model: Model, strategy: Strategy) -> None:
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    places = {
        model.name: model._distribute_strategy,
        "its optimizer": getattr(optimizer, "_distribution_strategy", None),
    }
    for name, place in places.items():
        if place is not strategy:
            what = f"{name} was not made under the parameter server strategy"
            raise UsageError(what, remedy="build and compile the model in the strategy's scope")
    if strategy.num_replicas_in_sync > 1:
        raise UsageError(
            f"a worker has {strategy.num_replicas_in_sync} GPUs",
            why="with strategy = ps a worker trains on one device",
            remedy="start a worker for each GPU, each with its own CUDA_VISIBLE_DEVICES",
        )


def _worker_offset(kind: Value) -> Value:
    index = tf.distribute.coordinator.experimental_get_current_worker_index()
    # Keras draws from 31 bits of the seed.
    first = tf.cast(index, tf.int64) * SEED_STRIDE % (1 << 31)
    return tf.cast(tf.stack([first, tf.constant(0, tf.int64)]), kind)


def _none_if_optional(value: Value) -> Value:
    """Return None for an empty optional, which Keras' adapters send for None."""
    return None if isinstance(value, tf.experimental.Optional) else value


def _is_number(value: Value) -> bool:
    return tf.is_tensor(value) and value.shape.rank == 0
