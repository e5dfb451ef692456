"""A train step that composes under ``tf.distribute``: XLA, accumulation, clipping, float16, EMA.

Keras compiles its whole step, the exchange between replicas included, which XLA cannot do, and it
branches inside a replica, which TensorFlow forbids. Here the forward and backward pass of one
replica are a function of their own (compiled or not) in which Keras' variables are written to a
``StatelessScope`` instead of memory. What it returns is exchanged and written outside of it. The
gradients are summed over the replicas first and clipped, checked and applied then, so that several
replicas do what one does with the whole batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.base.step_hooks import Update, held_updates
from tfdyno.runtime.recipe.exchange_wait import ExchangeWait
from tfdyno.runtime.recipe.replica_values import Written, is_averaged, key_of, own_sum, times
from tfdyno.runtime.recipe.shared_state import SEED_STRIDE, seed_states

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import DataIterator, Dataset, Function, Model, Strategy, Value

SUM = tf.distribute.ReduceOp.SUM


class SeveralUpdates(Exception):  # noqa: N818  (it is what the step does)
    """A custom ``train_step`` updates weights more than once: that cannot be put off."""


@dataclass(frozen=True, slots=True)
class Whole:
    """An iterator that is known to have batches enough for a whole execution."""

    iterator: Any


class ComposedStep:
    """The functions that ``fit`` and ``evaluate`` call of a model built under a strategy."""

    def __init__(
        self,
        model: Model,
        *,
        compiled: bool,
        accumulation: int = 1,
        timed: bool = False,
    ) -> None:
        """Prepare; must be called in the strategy's scope, with the model and optimizer built.

        Args:
            model: A compiled Keras model.
            compiled: Whether XLA compiles the part of each replica.
            accumulation: Batches per update of the weights.
            timed: Whether it counts how long it waits for other processes.
        """
        self.model, self.strategy = model, model.distribute_strategy
        self.wait = ExchangeWait(self.strategy) if timed else None
        self.optimizer, self.compiled, self.accumulation = model.optimizer, compiled, accumulation
        self.direct = False
        """Whether Keras' own ``train_step`` runs as it is: it updates weights more than once."""
        inner = getattr(self.optimizer, "inner_optimizer", self.optimizer)
        self._overwrite_every = inner.ema_overwrite_frequency if inner.use_ema else None
        inner.ema_overwrite_frequency = None  # done here, outside of the replicas
        # Gradients come here as sums over the replicas already.
        inner._all_reduce_sum_gradients = lambda pairs: pairs
        self._inner = inner
        self._sums: list[Any] = []
        self._targets: list[Any] = []
        self._unused: set[int] = set()
        """Variables without a gradient."""
        self._written: dict[Any, list[Any]] = {}
        self.always_full = False
        """Whether every batch of training has as many samples on each replica: spares asking."""
        self.batch_count = tf.Variable(0, dtype=tf.int64, trainable=False, name="batches")
        """Batches since the beginning: which of them update the weights."""
        if accumulation > 1:
            shapes = [(), *(variable.shape for variable in model.trainable_variables)]
            self._sums = [own_sum(shape, number) for number, shape in enumerate(shapes)]

    @property
    def variables(self) -> list[Any]:
        """What belongs to a checkpoint beside the model and its optimizer."""
        return [self.batch_count, *self._sums]

    def give_back(self) -> None:
        """Leave the optimizer as it was, for Keras' own functions."""
        if self.wait:
            self.wait.give_back()
        if "_all_reduce_sum_gradients" in vars(self._inner):
            del self._inner._all_reduce_sum_gradients
        self._inner.ema_overwrite_frequency = self._overwrite_every

    def train_function(self) -> Callable[[Any], dict[str, Any]]:
        """Return what Keras' ``fit`` calls with the iterator of an epoch; returns the logs."""
        return self._function(self._train_batch, self.model.steps_per_execution)

    def test_function(self) -> Callable[[Any], dict[str, Any]]:
        """Return what Keras' ``evaluate`` calls."""
        return self._function(self._test_batch, self.model.steps_per_execution)

    def _function(
        self, batch_step: Callable[[Any], dict[str, Any]], several: int
    ) -> Callable[[Any], dict[str, Any]]:
        one = tf.function(batch_step, autograph=False, reduce_retracing=True)

        @tf.function(autograph=False, reduce_retracing=True)
        def full(iterator: DataIterator) -> dict[str, Any]:
            """Take as many batches as an execution has, without going back to Python."""
            logs = one(iterator.get_next())
            if several == 1:
                return logs

            def body(index: Value, _logs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
                return index + 1, one(iterator.get_next())

            rest = tf.while_loop(
                lambda index, _logs: index < several, body, [tf.constant(1), logs],
                parallel_iterations=1,
            )  # fmt: skip
            return dict(rest[1])

        def run(iterator: DataIterator) -> dict[str, Any]:
            if isinstance(iterator, Whole):
                return self._or_directly(full, iterator.iterator)
            logs: dict[str, Any] = {}
            for done in range(several):
                try:
                    data = next(iterator)
                except (StopIteration, tf.errors.OutOfRangeError):
                    if done:
                        return logs
                    raise
                logs = self._or_directly(one, data)
            return logs

        return run

    def _or_directly(self, function: Function, given: Value) -> dict[str, Any]:
        """Call it; where its trace finds several updates, with the same data Keras' own way."""
        try:
            return function(given)
        except SeveralUpdates:
            self._run_directly()
            return function(given)

    def _run_directly(self) -> None:
        if self.compiled or self.accumulation > 1:
            raise UsageError(
                f"the train_step of {self.model.name} updates weights more than once in a step",
                why="its parts cannot be put off to be compiled or accumulated under a strategy",
                remedy="use execution = graph and accumulation = 1, or strategy = single",
            )
        self.give_back()
        self.direct = True

    # In the context of the whole strategy

    def _train_batch(self, data: Dataset) -> dict[str, Any]:
        if self.direct:
            return self._local(self.strategy.run(self.model.train_step, args=(data,)))
        if self.wait:
            self.wait.begin()
        logs = self.strategy.run(self._train_replica, args=(data,))
        if self.wait:
            self.wait.add()
        if self._sums:
            is_last = tf.equal((self.batch_count + 1) % self.accumulation, 0)
            tf.cond(is_last, self._update, lambda: tf.constant(0))
        if self._overwrite_every:
            count = self._inner.iterations
            due = tf.logical_and(count > 0, tf.equal(count % self._overwrite_every, 0))
            tf.cond(due, self._overwrite_by_average, lambda: tf.constant(0))
        self.batch_count.assign_add(1)
        return self._local(logs)

    def _update(self) -> Value:
        if self.wait:
            self.wait.begin()
        self.strategy.run(self._update_replica)
        if self.wait:
            self.wait.add()
        return tf.constant(0)

    def _test_batch(self, data: Dataset) -> dict[str, Any]:
        return self._local(self.strategy.run(self._test_replica, args=(data,)))

    def _local(self, logs: dict[str, Any]) -> dict[str, Any]:
        """Return the mean over the replicas of this process, as Keras has it."""

        def mean(value: Value) -> Value:
            parts = self.strategy.experimental_local_results(value)
            return tf.reduce_mean(tf.stack(parts), axis=0) if len(parts) > 1 else parts[0]

        return {name: tf.nest.map_structure(mean, value) for name, value in logs.items()}

    def _overwrite_by_average(self) -> Value:
        averages = self._inner._model_variables_moving_average
        for variable, average in zip(self._inner._trainable_variables, averages, strict=True):
            self.strategy.extended.update(
                variable._value, lambda a, b: a.assign(b), args=(average._value,), group=False
            )
        return tf.constant(0)

    # In the context of one replica

    def _train_replica(self, data: Dataset) -> dict[str, Any]:
        context = tf.distribute.get_replica_context()
        gradients, values, logs = self._run(self.model.train_step, context, data)
        # 1 where all have the same, which keeps the last bit.
        count = tf.constant(1.0) if self.always_full else _count(data)
        sums = [times(gradient, count) for gradient in gradients]
        if self._sums:
            self._accumulate(sums, count)
            sums = []
        written = self._write_own(self.model.train_step, values, count)
        agreed = [(v, times(value, count)) for v, value in written if is_averaged(v)]
        agreed += [(v, value) for v, value in written if v.aggregation == "sum"]
        total_count, totals = self._exchange(
            context, count, [*sums, *(value for _, value in agreed)]
        )
        self._write_common(written, agreed, totals[len(sums) :], total_count)
        if not self._sums:
            self._apply(context, totals[: len(sums)], total_count)
        return logs

    def _update_replica(self) -> None:
        """Update the weights by what was accumulated, and begin anew."""
        context = tf.distribute.get_replica_context()
        sums = [total.read_value() for total in self._sums]
        total_count, totals = self._exchange(context, sums[0], sums[1:])
        with tf.control_dependencies([total_count, *totals]):
            for total in self._sums:
                total.assign(tf.zeros_like(total))
        places = {key_of(v): number for number, v in enumerate(self.model.trainable_variables)}
        gradients = [
            None if key_of(variable) in self._unused else totals[places[key_of(variable)]]
            for variable in self._targets
        ]
        self._apply(context, gradients, total_count)

    def _exchange(self, context: Value, count: Value, parts: list[Any]) -> tuple[Any, list[Any]]:
        """Return the sums over all replicas, with the wait for them counted where that is asked."""
        if not self.wait:
            return _exchanged(context, count, parts)
        found: tuple[Any, list[Any]] = self.wait.timed(_exchanged, context, count, parts)
        return found

    def _apply(self, context: Value, totals: list[Any], total_count: Value) -> None:
        # Keras has divided the loss by the number of replicas; here it is by samples.
        factor = context.num_replicas_in_sync / tf.maximum(total_count, 1.0)
        self.optimizer.apply([times(total, factor) for total in totals], self._targets)

    def _test_replica(self, data: Dataset) -> dict[str, Any]:
        context = tf.distribute.get_replica_context()
        _, values, logs = self._run(self.model.test_step, context, data)
        count = _count(data)
        written = self._write_own(self.model.test_step, values, count)
        self._write_common(written, [], [], count)
        return logs

    def _run(
        self,
        step: Callable[[Any], dict[str, Any]],
        context: Value,
        data: Dataset,
    ) -> tuple[list[Any], list[Any], dict[str, Any]]:
        compute = tf.function(
            lambda data, replica: self._computed(step, data, replica),
            jit_compile=self.compiled, autograph=False, reduce_retracing=True,
        )  # fmt: skip
        number = tf.convert_to_tensor(context.replica_id_in_sync_group)
        return compute(data, number)

    def _computed(
        self, step: Callable[[Any], dict[str, Any]], data: Dataset, replica: Value
    ) -> tuple[list[Any], list[Any], dict[str, Any]]:  # fmt: skip
        """Return gradients, values of what was written, and logs of one replica; writes nothing."""
        offset = tf.stack([tf.cast(replica, tf.int64) * SEED_STRIDE, tf.constant(0, tf.int64)])
        seeds = seed_states(self.model)
        begun = [(seed, tf.convert_to_tensor(seed.value)) for seed in seeds]
        mapping = [(seed, value + tf.cast(offset, value.dtype)) for seed, value in begun]
        updates: list[Update] = []
        with held_updates(updates), Written(mapping) as scope:
            logs = step(data)
        if len(updates) > 1 or any(one.optimizer is not self.optimizer for one in updates):
            raise SeveralUpdates
        written = list(scope.written.values())
        values = [tf.convert_to_tensor(scope.get_current_value(variable)) for variable in written]
        seed_ids = {id(seed) for seed in seeds}
        values = [
            value - tf.cast(offset, value.dtype) if id(variable) in seed_ids else value
            for variable, value in zip(written, values, strict=True)
        ]
        self._written[step] = written
        if updates:
            self._targets = updates[0].variables
        return updates[0].gradients if updates else [], values, logs

    def _accumulate(self, sums: list[Any], count: Value) -> None:
        """Add a batch to the sums of this replica."""
        places = {key_of(v): number for number, v in enumerate(self.model.trainable_variables)}
        self._sums[0].assign_add(count)
        for variable, part in zip(self._targets, sums, strict=True):
            if part is None:
                self._unused.add(key_of(variable))
            else:
                total = self._sums[1 + places[key_of(variable)]]
                total.assign_add(tf.cast(tf.convert_to_tensor(part), total.dtype))

    def _write_own(
        self,
        step: Callable[[Any], dict[str, Any]],
        values: list[Any],
        count: Value,
    ) -> list[tuple[Any, Any]]:
        """Write the variables that each replica has for itself; returns the others."""
        common = []
        for variable, value in zip(self._written[step], values, strict=True):
            if variable.synchronization != "on_read":
                common.append((variable, value))
                continue
            old = tf.convert_to_tensor(variable._value)
            # A replica without samples has the mean of nothing.
            variable._value.assign(tf.where(count > 0, value, old))
        return common

    def _write_common(
        self,
        written: list[tuple[Any, Any]],
        agreed: list[tuple[Any, Any]],
        totals: list[Any],
        total_count: Value,
    ) -> None:
        """Write what all replicas have in common, from what they agreed upon."""
        new = dict(zip((id(v) for v, _ in agreed), totals, strict=True))
        variables, values = [], []
        for variable, value in written:
            total = new.get(id(variable), value)
            is_mean = id(variable) in new and is_averaged(variable)
            variables.append(variable._value)
            values.append(times(total, 1.0 / total_count) if is_mean else total)
        if not variables:
            return

        def write(strategy: Strategy, values: list[Any]) -> None:
            for variable, value in zip(variables, values, strict=True):
                strategy.extended.update(
                    variable, lambda a, b: a.assign(tf.cast(b, a.dtype)), args=(value,), group=False
                )

        tf.__internal__.distribute.interim.maybe_merge_call(write, self.strategy, values)


def _count(data: Dataset) -> Value:
    """Return samples of this replica; 1 where nothing tells."""
    leaves = [leaf for leaf in tf.nest.flatten(data) if hasattr(leaf, "shape")]
    if not leaves or not leaves[0].shape.rank:
        return tf.constant(1.0)
    return tf.cast(tf.shape(leaves[0])[0], tf.float32)


def _exchanged(context: Value, count: Value, parts: list[Any]) -> tuple[Any, list[Any]]:
    """Return the sums over all replicas of a count and of values, some of which may be None."""
    given = [part for part in parts if part is not None]
    if not given:
        return count, parts
    # One exchange for all: several at a time may meet in another order on another replica.
    totals = list(context.all_reduce(SUM, [count, *given]))
    rest = iter(totals[1:])
    return totals[0], [None if part is None else next(rest) for part in parts]
