"""Measure all-reduces with TensorFlow: between the nodes of ``TF_CONFIG``, or between own cards."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.units import MIB
from tfdyno.core.cluster.cluster_facts import AllReduce, SizeTimes
from tfdyno.core.messages.bench import ALL_REDUCE, MeasureAllReduce
from tfdyno.process.child import Progress, leave, serve

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Module, Strategy, Value

LEAST_REPEATS, MOST_REPEATS = 5, 30
ELEMENT_BYTES = 4
LINGER_S = 1.0
"""The time after the last exchange: the others may still be about to write what they found."""


def handle(request: MeasureAllReduce, progress: Progress) -> AllReduce:
    """Run all-reduces of growing sizes until the time is spent."""
    progress("importing TensorFlow")
    import tensorflow as tf

    progress("meeting the other processes" if request.between == "nodes" else "taking the cards")
    strategy, implementation = _strategy(tf, request.between)
    replicas = strategy.num_replicas_in_sync
    left_s, is_right = request.budget_s, True
    found: list[SizeTimes] = []
    reduced = _reduced(tf, strategy, implementation)
    agreed = _agreed(tf, reduced, strategy, replicas)
    for size in request.sizes_bytes:
        progress(f"all-reduce of {size / MIB:g} MiB over {replicas} replicas")
        values = _filled(tf, strategy, size)
        _timed(strategy, reduced, values)  # memory is taken and connections are opened
        each_s = agreed(_timed(strategy, reduced, values)[0])
        if found and each_s * LEAST_REPEATS > left_s:
            break  # all agree on it: they were told the same time
        count = max(LEAST_REPEATS, min(MOST_REPEATS, int(left_s / 4 / max(each_s, 1e-6))))
        runs = [_timed(strategy, reduced, values) for _ in range(count)]
        is_right &= all(abs(first - replicas) < 1e-3 for _, first in runs)
        found.append(SizeTimes(size_bytes=size, times_s=tuple(taken_s for taken_s, _ in runs)))
        left_s -= agreed(sum(taken_s for taken_s, _ in runs))
    _part(tf, agreed)
    return AllReduce(
        between=request.between,
        implementation=implementation,
        replicas=replicas,
        sizes=tuple(found),
        is_right=is_right,
    )


def _strategy(tf: Module, between: str) -> tuple[Any, str]:
    """Return the strategy, and which all-reduce it uses: NCCL's where there are cards."""
    cards = tf.config.list_physical_devices("GPU")
    for card in cards:
        tf.config.experimental.set_memory_growth(card, True)
    implementation = "NCCL" if cards else "RING"
    if between == "cards":
        return tf.distribute.MirroredStrategy(), implementation
    kinds = tf.distribute.experimental.CommunicationImplementation
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=getattr(kinds, implementation)
    )
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    return strategy, implementation


def _reduced(tf: Module, strategy: Strategy, implementation: str) -> Callable[[Any], Any]:
    kinds = tf.distribute.experimental.CommunicationImplementation
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=getattr(kinds, implementation)
    )

    def own(value: Value) -> Value:
        context = tf.distribute.get_replica_context()
        here = tf.identity(value)  # on the replica's own device, which an argument does not name
        return context.all_reduce(tf.distribute.ReduceOp.SUM, here, options)

    @tf.function(reduce_retracing=False)
    def all_reduce(values: Value) -> Value:
        return strategy.run(own, args=(values,))

    return all_reduce


def _filled(tf: Module, strategy: Strategy, size: int) -> Value:
    """Return a buffer of ones on each replica."""
    ones = tf.ones((max(1, size // ELEMENT_BYTES),))
    return strategy.experimental_distribute_values_from_function(lambda _context: ones)


def _timed(strategy: Strategy, reduced: Callable[[Any], Any], values: Value) -> tuple[float, float]:
    """Return seconds until all own replicas have the sum, and its first element."""
    began_s = time.perf_counter()
    results = strategy.experimental_local_results(reduced(values))
    firsts = [float(result[0]) for result in results]  # waits for the device
    return time.perf_counter() - began_s, firsts[0]


def _part(tf: Module, agreed: Callable[[float], float]) -> None:
    """Leave after all others have measured: a neighbour that is gone fails who still receives.

    Whoever ends this exchange knows that all have begun it, so they have all they came for; whether
    it fails for them then no longer matters.
    """
    with contextlib.suppress(tf.errors.OpError):
        agreed(0.0)
        time.sleep(LINGER_S)


def _agreed(
    tf: Module,
    reduced: Callable[[Any], Any],
    strategy: Strategy,
    replicas: int,
) -> Callable[[float], float]:
    """Give a function that makes one time of those of all processes: their mean."""

    def agreed(own_s: float) -> float:
        values = strategy.experimental_distribute_values_from_function(
            lambda _context: tf.constant([own_s], tf.float32)
        )
        return _timed(strategy, reduced, values)[1] / replicas

    return agreed


if __name__ == "__main__":
    leave(serve(handle, ALL_REDUCE))
