"""The ``tf.distribute`` strategy of a recipe, made before anything touches a device."""

from __future__ import annotations

import contextlib
import csv
import functools
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.process.failure import first_line
from tfdyno.runtime.base.replaced import ignored, replaced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.untyped import Strategy, Value
    from tfdyno.core.recipe.recipe import Recipe

TABLE = Path(__file__).parents[1] / "tables" / "tensorflow_tpu.csv"
REMEDY = "start it on a machine with TPUs, as tfdyno launch --on vertex --with tpu=v5e-8 does"
_NAMES = (
    "CentralStorageStrategy", "MirroredStrategy", "MultiWorkerMirroredStrategy",
    "OneDeviceStrategy", "ParameterServerStrategy", "TPUStrategy",
)  # fmt: skip


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


def tpu_strategy() -> Value:
    """Return the strategy of all TPUs of this machine, which are reset for it; never tried on one.

    Raises:
        UsageError: There is none, or this TensorFlow is not built for them.
    """
    import tensorflow as tf

    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver.connect("local")
    except (tf.errors.OpError, ValueError, RuntimeError) as error:
        why = why_none(tf.__version__) or first_line(error)
        raise UsageError("TensorFlow sees no TPU here", why=why, remedy=REMEDY) from None
    return tf.distribute.TPUStrategy(resolver)


@functools.cache
def tpu_releases() -> tuple[str, ...]:
    """List TensorFlow releases that were built for TPUs, as ``2.20``; the last at the end."""
    with TABLE.open(encoding="utf-8", newline="") as lines:
        return tuple(row["tensorflow"] for row in csv.DictReader(lines, strict=True))


def why_none(version: str) -> str:
    """Say why a TensorFlow of this version sees no TPU, as far as the version tells."""
    release = ".".join(version.split(".")[:2])
    if release in tpu_releases():
        return ""
    return f"TensorFlow {release} is not built for TPUs; {tpu_releases()[-1]} is the last that was"


def tpu_notes(steps_per_execution: int, *, is_always_full: bool) -> list[str]:
    """Return what slows a training on TPUs down, in sentences.

    Args:
        steps_per_execution: Of the model.
        is_always_full: Whether all batches have the same number of samples.
    """
    notes = []
    if steps_per_execution == 1:
        notes.append("Each step waits for Python: TPUs want steps_per_execution = 20 or more.")
    if not is_always_full:
        notes.append(
            "Batches may differ in size, for which TPUs compile again: "
            "batch the data with drop_remainder=True."
        )
    return notes


@contextlib.contextmanager
def strategies_held(strategy: Strategy, name: str, notes: list[str]) -> Iterator[None]:
    """Hand out the recipe's strategy for every one that the user's code makes.

    A scope inside another strategy's scope fails in TensorFlow, and a second multi-worker strategy
    would ask for the same port. With the same one, scope in scope is allowed.

    Args:
        strategy: The recipe's; None: TensorFlow's own for one device.
        name: As the recipe has it; empty: it asks for none, and the code's own are left alone.
        notes: Receives a sentence for each kind of strategy that the code makes.
    """
    if not name:
        yield
        return
    import tensorflow as tf

    held = strategy or tf.distribute.get_strategy()
    places = (tf.distribute, tf.distribute.experimental, tf.compat.v1.distribute)
    known = [(place, each) for place in places for each in _NAMES if hasattr(place, each)]
    with replaced(*((*one, _standing_for(one[1], held, name, notes)) for one in known)):
        yield


def _standing_for(kind: str, held: Value, name: str, notes: list[str]) -> type:
    """Return a class, so that ``isinstance`` and annotations of the user's code still work."""
    note = f"The code makes a {kind}; strategy = {name} of the recipe holds."
    return type(kind, (), {"__new__": ignored(note, notes, held)})
