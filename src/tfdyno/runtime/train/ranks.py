"""Whether the workers of a training still have the same weights, and which of them is the slowest.

A training that silently is none together shows no error: each worker learns by itself. So after
the first epoch of each session a digest of the weights goes round.
"""

from __future__ import annotations

import hashlib
import statistics
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf

from tfdyno.core.base.errors import ToolError
from tfdyno.core.base.units import significant
from tfdyno.runtime.recipe.strategy import worker_count, worker_rank

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Model, Strategy, Value, Variable
    from tfdyno.runtime.recipe.composed_step import ComposedStep

DRIFTED_RATIO = 1e-3
"""Weights that differ by more of their largest are not those of one training; cards of several
kinds differ by the last digits."""
HELD_UP_RATIO = 0.2
"""A worker is too slow when the others wait for it so much of a step,"""
HELD_UP_S = 0.005
"""and so long."""
LEAST_STEPS = 5
DIGEST_BYTES = 6
"""The bytes that a float64 holds exactly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """The worker that the others wait for."""

    rank: int
    wait_s: float
    """The time of each step that the others wait."""
    step_s: float

    @property
    def sentence(self) -> str:
        """What is wrong."""
        wait, step = (significant(1e3 * value) for value in (self.wait_s, self.step_s))
        return (
            f"worker {self.rank} holds the others up: they wait {wait} ms of each step of {step} ms"
            " for it."
        )


class Ranks:
    """The workers of one strategy; every method is a joint operation of all of them."""

    def __init__(self, strategy: Strategy, rank: int, count: int) -> None:
        """Take the place of this process among ``count``."""
        self._strategy, self._rank, self._count = strategy, rank, count
        self._replicas = strategy.num_replicas_in_sync
        self._own = self._replicas // count
        self._sum = tf.function(self._summed, autograph=False, reduce_retracing=True)

    def check_same(self, variables: list[Any]) -> str:
        """Compare the weights of all workers.

        Args:
            variables: The trainable ones, in the same order everywhere.

        Returns:
            A sentence where they differ by so little that the kind of card explains it; or nothing.

        Raises:
            ToolError: They have drifted apart; names the workers.
        """
        digests = self.table([_digest(variables)])[:, 0]
        if len(set(digests.tolist())) == 1:
            return ""
        apart = self.table([self._distance(variables)])[:, 0]
        if float(apart.max()) <= DRIFTED_RATIO:
            return (
                f"The weights of the workers differ by {significant(float(apart.max()), 2)} of the "
                "largest: their devices compute differently."
            )
        values = digests.tolist()
        usual = statistics.mode(values)
        others = [rank for rank, digest in enumerate(values) if digest != usual]
        named = others if len(others) < self._count - 1 else list(range(self._count))
        raise ToolError(
            f"the weights of {_names(named)} have drifted apart",
            why=f"after the same steps they differ by {significant(float(apart.max()), 2)} of the "
            "largest, so the workers do not train one model",
            remedy="look for code that sets weights on one worker by itself: a callback, "
            "an own train_step or an optimizer that does not exchange its gradients",
        )

    def straggler(self, wait_s: float, step_s: float, steps: int) -> Straggler | None:
        """Return the worker that the others wait for, if there is one.

        Args:
            wait_s: Of each step of this worker, in the exchange.
            step_s: Of each step.
            steps: So many of them.
        """
        found = self.table([wait_s, step_s])
        if steps < LEAST_STEPS:
            return None
        return slowest(found[:, 0].tolist(), float(found[:, 1].mean()))

    def table(self, own: list[float]) -> Value:
        """Return the numbers of all workers, a row for each."""
        rows = np.zeros((self._count, len(own)), np.float64)
        rows[self._rank] = own
        return self._sum(tf.constant(rows)).numpy()

    def _summed(self, value: Value) -> Value:
        """Return the sum over workers of a value that each has for itself."""
        first = self._rank * self._own

        def replica() -> Value:
            context = tf.distribute.get_replica_context()
            number = tf.cast(context.replica_id_in_sync_group, tf.int32)
            mine = tf.where(tf.equal(number, first), value, tf.zeros_like(value))
            return context.all_reduce(tf.distribute.ReduceOp.SUM, mine)

        return self._strategy.experimental_local_results(self._strategy.run(replica))[0]

    def _distance(self, variables: list[Any]) -> float:
        """Return how far this worker's weights are from all's mean: the most of any variable."""
        most = 0.0
        for variable in variables:
            own = [np.asarray(part, np.float64) for part in _values(variable)]
            mean = self._sum(tf.constant(own[0])).numpy() / self._count
            scale = float(np.abs(mean).max(initial=0.0)) or 1.0
            most = max(most, *(float(np.abs(one - mean).max(initial=0.0)) / scale for one in own))
        return most


def slowest(waits_s: list[float], step_s: float) -> Straggler | None:
    """Return the worker that waits least, where the others wait too long.

    Args:
        waits_s: Of each worker in a step.
        step_s: The whole step.
    """
    rank = min(range(len(waits_s)), key=waits_s.__getitem__)
    others = [wait for one, wait in enumerate(waits_s) if one != rank]
    if not others:
        return None
    held_s = statistics.median(others) - waits_s[rank]
    if held_s < max(HELD_UP_S, HELD_UP_RATIO * step_s):
        return None
    # The end of an epoch is waited for as well, which is no step.
    return Straggler(rank=rank, wait_s=min(held_s, step_s), step_s=step_s)


def _digest(variables: list[Any]) -> float:
    """Digest all values, those of each own replica included."""
    found = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for variable in variables:
        parts = [part.numpy() for part in _values(variable)]
        found.update(np.ascontiguousarray(parts[0]).tobytes())
        for part in parts[1:]:
            if part.tobytes() != parts[0].tobytes():
                found.update(np.ascontiguousarray(part).tobytes())
    return float(int.from_bytes(found.digest(), "big"))


def _values(variable: Variable) -> tuple[Any, ...]:
    """Return what each replica of this process has of a variable."""
    raw = variable.value if isinstance(variable, keras.Variable) else variable
    return tuple(getattr(raw, "values", None) or (raw,))


def _names(ranks: list[int]) -> str:
    names = [f"worker {rank}" for rank in ranks[:4]] + ["others"] * (len(ranks) > 4)
    return " and ".join(names)


class WorkerGroup:
    """Looks after each epoch whether all workers still train one model at one pace.

    Attributes:
        notes: Sentences for the user.
    """

    def __init__(self, model: Model, step: ComposedStep) -> None:
        """Take the model and the step that all of them run together."""
        self._model, self._step = model, step
        self._rank = worker_rank()
        self._ranks = Ranks(model.distribute_strategy, self._rank, worker_count())
        self._steps, self._began_s, self._ended_s = 0, 0.0, 0.0
        self._is_checked = False
        self._slow: set[int] = set()
        self.notes: list[str] = []

    def table(self, own: list[float]) -> Value:
        """Return the numbers of all workers, a row for each; a joint operation."""
        began_s = time.perf_counter()
        found = self._ranks.table(own)
        if self._step.wait:
            self._step.wait.waited(time.perf_counter() - began_s)
        return found

    def steps(self, count: int) -> None:
        """Count steps that were taken; the first call of an epoch is left out of its pace."""
        if not self._began_s:
            self._clear()
            return
        self._steps += count
        self._ended_s = time.monotonic()

    def epoch_end(self, epoch: int) -> None:
        """End an epoch of all workers; raises ``ToolError`` where they have drifted apart.

        Args:
            epoch: Counted from 1.
        """
        if not self._is_checked:
            self._is_checked = True
            if note := self._ranks.check_same(self._model.trainable_variables):
                self.notes.append(note)
        wait_s, steps = (self._step.wait.take_s() if self._step.wait else 0.0), self._steps
        passed_s = self._ended_s - self._began_s
        each = max(1, steps)
        slow = self._ranks.straggler(wait_s / each, passed_s / each, steps)
        if slow and slow.rank not in self._slow:
            self._slow.add(slow.rank)
            self.notes.append(f"In epoch {epoch} {slow.sentence}")
            if self._rank == 0:  # whoever watches need not wait for the end
                print(self.notes[-1], file=sys.stderr, flush=True)
        self._steps, self._began_s = 0, 0.0

    def _clear(self) -> None:
        """Count the pace from here."""
        if self._step.wait:
            self._step.wait.take_s()
        self._steps = 0
        self._began_s = self._ended_s = time.monotonic()
