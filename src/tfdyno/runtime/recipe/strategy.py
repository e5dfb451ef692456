"""The ``tf.distribute`` strategy of a recipe, made before anything touches a device."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Strategy, Value
    from tfdyno.core.recipe.recipe import Recipe


def make_strategy(recipe: Recipe) -> Strategy:
    """Return the strategy that a recipe names; None: one device, or what the script makes itself.

    Raises:
        UsageError: There are fewer devices than asked for, no TPU, or no TF_CONFIG for several
            workers.
    """
    if recipe.strategy == "mirrored":
        return _mirrored(recipe)
    if recipe.strategy == "multiworker":
        return _multi_worker()
    if recipe.strategy == "ps":
        from tfdyno.runtime.recipe.parameter_server import make_strategy as parameter_server

        return parameter_server()
    if recipe.strategy == "tpu":
        from tfdyno.runtime.recipe.tpu import tpu_strategy

        return tpu_strategy()
    return None


def is_chief() -> bool:
    """Return whether this process writes and answers: the only one, the chief, or worker 0."""
    cluster, task = _tf_config()
    role, is_first = task.get("type"), task.get("index", 0) == 0
    return role in (None, "chief") or (role == "worker" and is_first and "chief" not in cluster)


def _mirrored(recipe: Recipe) -> Value:
    import tensorflow as tf

    cards = len(tf.config.list_physical_devices("GPU"))
    count = recipe.replica_count(cards)
    if cards:
        if count > cards:
            what = f"devices = {count}, and TensorFlow sees {cards} GPU{'s' * (cards > 1)}"
            raise UsageError(what, remedy="give as many or fewer, and see tfdyno doctor")
        return tf.distribute.MirroredStrategy([f"GPU:{n}" for n in range(count)])
    cpu = tf.config.list_physical_devices("CPU")[0]
    parts = [tf.config.LogicalDeviceConfiguration() for _ in range(count)]
    tf.config.set_logical_device_configuration(cpu, parts)
    return tf.distribute.MirroredStrategy([f"CPU:{n}" for n in range(count)])


def _multi_worker() -> Value:
    import tensorflow as tf

    if not os.environ.get("TF_CONFIG"):
        raise UsageError(
            "strategy = multiworker needs TF_CONFIG, which names the workers",
            remedy="let tfdyno train start the processes, or set it on every worker",
        )
    kinds = tf.distribute.experimental.CommunicationImplementation
    kind = kinds.AUTO if tf.config.list_physical_devices("GPU") else kinds.RING
    options = tf.distribute.experimental.CommunicationOptions(implementation=kind)
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)


def worker_rank() -> int:
    """Return 0 for the process that decides; workers in the order of TF_CONFIG."""
    cluster, task = _tf_config()
    index = int(task.get("index", 0))
    # As core/cluster/cluster.py counts: a chief among workers is the first of them.
    has_chief_before = task.get("type") == "worker" and "ps" not in cluster
    return index + len(cluster.get("chief", ())) * has_chief_before


def worker_count() -> int:
    """Return processes that run each step together."""
    cluster, _ = _tf_config()
    trainers = len(cluster.get("chief", ())) + len(cluster.get("worker", ()))
    return 1 if "ps" in cluster else max(1, trainers)


def _tf_config() -> tuple[dict[str, Any], dict[str, Any]]:
    found = json.loads(os.environ.get("TF_CONFIG") or "{}")
    return found.get("cluster") or {}, found.get("task") or {}
