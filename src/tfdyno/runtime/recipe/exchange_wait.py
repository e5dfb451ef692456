"""How long a process waits for the others: in the exchange of gradients, and at each batch.

All take their steps together, so the slowest is not the one whose steps are long: it is the one
that waits least. The clock is read in the graph, before and behind the exchange. A copy of one
number to the host makes a card's own work count, which the host runs ahead of. Before each batch
the workers agree that there is one for all (``strategy.reduce``): who comes late with it, by a
callback or by its data, lets the others wait there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import tensorflow as tf

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Strategy, Value

Exchange = Callable[[Any, Any, list[Any]], tuple[Any, list[Any]]]


class ExchangeWait:
    """The seconds of one process; in a graph ``timed`` comes first and ``add`` after it."""

    def __init__(self, strategy: Strategy) -> None:
        """Begin in the strategy's scope; ``give_back`` ends it."""
        self._strategy, self._reduce = strategy, strategy.reduce
        strategy.reduce = self._timed_reduce
        self._on_host_s = 0.0
        self._total_s = tf.Variable(0.0, dtype=tf.float64, trainable=False, name="exchange_wait")
        self._parts: list[Any] = []

    def begin(self) -> None:
        """A step is to be traced."""
        self._parts = []

    def timed(self, exchange: Exchange, context: Value, count: Value, parts: list[Any]) -> Value:
        """Return what ``exchange`` returns; called in the context of one replica."""
        before = _moment([count, *parts])
        total, totals = exchange(context, count, parts)
        self._parts.append(_moment([total, *totals], before) - before)
        return total, totals

    def add(self) -> None:
        """Count what was timed; called in the context of the whole strategy."""
        if self._parts:
            # The last of this process' own replicas waits for other processes alone.
            self._total_s.assign_add(tf.reduce_min(tf.stack(self._parts)))

    def waited(self, seconds_s: float) -> None:
        """Count what the host has waited in an exchange of its own."""
        self._on_host_s += seconds_s

    def take_s(self) -> float:
        """Return the seconds since the last call."""
        found = float(self._total_s.numpy()) + self._on_host_s
        self._total_s.assign(0.0)
        self._on_host_s = 0.0
        return found

    def give_back(self) -> None:
        """Leave the strategy as it was."""
        if "reduce" in vars(self._strategy):
            del self._strategy.reduce

    def _timed_reduce(self, *args: Any, **options: Any) -> Value:
        if not tf.executing_eagerly():
            return self._reduce(*args, **options)
        began_s = time.perf_counter()
        found = self._reduce(*args, **options)
        self.waited(time.perf_counter() - began_s)
        return found


def _moment(values: list[Any], *before: Any) -> Value:
    """Return the time when all values are there."""
    given = [value for value in values if value is not None]
    tensors = tf.nest.flatten(given, expand_composites=True)
    with tf.device("CPU:0"), tf.control_dependencies([*tensors, *before]):
        on_host = tf.identity(tf.reshape(tensors[-1], [-1])[:1])
        with tf.control_dependencies([on_host]):
            return tf.timestamp()
