"""A cluster of real TensorFlow processes: one all-reduce, or one step given to a worker.

It is started by ``test_workers.py`` through the launcher, as ``tfdyno.runtime.train.child`` is.
"""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfdyno.core.messages.child import Child
from tfdyno.process import child

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Module, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What each process does."""

    do: str


CLUSTER: Child[Act, dict[str, Any]] = Child(
    module="tests.jobs.cluster_child", request=Act, result=dict
)


def handle(request: Act, progress: Value) -> dict[str, Any]:
    """Do what the request names."""
    progress("importing TensorFlow")
    import tensorflow as tf

    return {"all-reduce": all_reduce, "schedule": schedule}[request.do](tf, progress)


def all_reduce(tf: Module, progress: Value) -> dict[str, Any]:
    """The sum of 1 from worker 0 and 2 from worker 1, over the ring of gRPC."""
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation.RING
    )
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    progress("the cluster stands")
    rank = strategy.cluster_resolver.task_id

    @tf.function  # type: ignore[untyped-decorator, unused-ignore]
    def summed() -> Value:
        def replica() -> Value:
            context = tf.distribute.get_replica_context()
            return context.all_reduce("sum", tf.fill([4], float(rank + 1)))

        return strategy.run(replica)

    total = strategy.experimental_local_results(summed())[0].numpy().tolist()
    # TensorFlow takes SIGTERM for itself when the cluster forms; a handler set later gets it.
    told: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: told.append(number))
    signal.raise_signal(signal.SIGTERM)
    until_s = time.monotonic() + 60
    while not told and time.monotonic() < until_s:
        time.sleep(0.01)
    print(f"rank {rank} has {total[0]}")
    return {"sum": total, "replicas": strategy.num_replicas_in_sync, "told": told}


def schedule(tf: Module, progress: Value) -> dict[str, Any]:
    """One step on a worker, that changes a variable on the parameter server."""
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type != "chief":
        server = tf.distribute.Server(
            resolver.cluster_spec(),
            job_name=resolver.task_type,
            task_index=resolver.task_id,
            protocol="grpc",
        )
        progress("serving")
        server.join()
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        weight = tf.Variable(40.0)

    @tf.function  # type: ignore[untyped-decorator, unused-ignore]
    def step() -> Value:
        weight.assign_add(2.0)
        return weight.read_value()

    value = float(coordinator.schedule(step).fetch())
    coordinator.join()
    return {"value": value, "device": str(weight.device)}


if __name__ == "__main__":
    child.leave(child.serve(handle, CLUSTER))
