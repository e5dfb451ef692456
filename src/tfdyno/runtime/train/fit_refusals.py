"""Settings that come too late for a process in which TensorFlow runs and the model is built."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.base.keras_internals import all_layers
from tfdyno.runtime.base.tensorflow_internals import is_deterministic
from tfdyno.runtime.recipe.apply import limit_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.untyped import Model
    from tfdyno.core.recipe.recipe import Recipe

_KINDS = {
    "": "single", "OneDeviceStrategy": "single", "MirroredStrategy": "mirrored",
    "MultiWorkerMirroredStrategy": "multiworker", "CollectiveAllReduceStrategy": "multiworker",
    "ParameterServerStrategy": "ps", "ParameterServerStrategyV2": "ps",
    "TPUStrategy": "tpu", "TPUStrategyV2": "tpu",
}  # fmt: skip
"""Names of a recipe for the classes of ``tf.distribute``, which has two for most."""
_DEFAULT = "_DefaultDistributionStrategy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What stands already where ``fit`` is called; empty and 0 mean TensorFlow's own choice."""

    policies: tuple[str, ...] = ()
    """Dtype policies of the layers that have weights; of all layers where none has any yet."""
    strategy: str = ""
    """Class of the strategy that the model was built in."""
    replica_count: int = 1
    threads_intra: int = 0
    threads_inter: int = 0
    is_deterministic: bool = False
    visible_devices: str = ""
    has_growth: bool = True
    """Whether memory grows on every card; also where there is no card."""
    memory_limit_bytes: int = 0
    """The memory limit of every card."""


def standing_of(model: Model) -> Standing:
    """Return what stands for a Keras model in this process."""
    import tensorflow as tf

    strategy = model.distribute_strategy
    name = type(strategy).__name__
    cards = tf.config.list_physical_devices("GPU")
    layers = all_layers(model)
    policies = [each.dtype_policy.name for each in layers if each.weights]
    policies = policies or [each.dtype_policy.name for each in layers]
    return Standing(
        policies=tuple(dict.fromkeys(policies)),
        strategy="" if name == _DEFAULT else name,
        replica_count=int(strategy.num_replicas_in_sync),
        threads_intra=tf.config.threading.get_intra_op_parallelism_threads(),
        threads_inter=tf.config.threading.get_inter_op_parallelism_threads(),
        is_deterministic=is_deterministic(),
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES", ""),
        has_growth=all(tf.config.experimental.get_memory_growth(card) for card in cards),
        memory_limit_bytes=limit_bytes(cards),
    )


def refuse_late(recipe: Recipe, standing: Standing) -> None:
    """Refuse settings that need a fresh process, unless they stand already.

    Raises:
        UsageError: Names all of them in one sentence, and what to do.
    """
    found = list(_late(recipe, standing))
    if not found:
        return
    names = ", ".join(name for name, _ in found)
    reasons = ", ".join(dict.fromkeys(reason for _, reason in found))
    raise UsageError(
        f"{names} cannot be set by fit in a process that runs already",
        why=reasons,
        remedy="run tfdyno train, or set it before TensorFlow starts and the model is built",
    )


def _late(recipe: Recipe, standing: Standing) -> Iterator[tuple[str, str]]:
    """Name and reason of each setting that neither stands nor can be set any more."""
    if recipe.precision and not _is_policy(recipe.precision, standing.policies):
        yield "precision", f"the model was built in {' and '.join(standing.policies)}"
    yield from _of_strategy(recipe, standing)
    for name in ("threads_intra", "threads_inter"):
        if getattr(recipe, name) not in (0, getattr(standing, name)):
            yield name, "TensorFlow has its threads"
    if recipe.visible_devices not in ("", standing.visible_devices):
        yield "visible_devices", "TensorFlow has found its cards"
    memory = "TensorFlow has taken its memory"
    if recipe.memory_growth and not standing.has_growth:
        yield "memory_growth", memory
    if recipe.memory_limit_bytes not in (0, standing.memory_limit_bytes):
        yield "memory_limit_bytes", memory
    if recipe.memory_fraction:  # TensorFlow 2 has no public way to set it at all
        yield "memory_fraction", memory
    if recipe.deterministic and not standing.is_deterministic:
        yield "deterministic", "operations are not deterministic here"


def _of_strategy(recipe: Recipe, standing: Standing) -> Iterator[tuple[str, str]]:
    where = "on one device"
    if standing.strategy:
        where = f"in a {standing.strategy} of {standing.replica_count}"
    reason = f"the model was built {where}"
    kind = _KINDS.get(standing.strategy, "")
    if (recipe.strategy and recipe.strategy != kind) or kind == "ps":
        yield "strategy", reason
    if recipe.devices not in (0, standing.replica_count):
        yield "devices", reason


def _is_policy(precision: str, policies: tuple[str, ...]) -> bool:
    if precision == "float8":  # Keras quantizes a model that computes in bfloat16
        return any("mixed_bfloat16" in name for name in policies)
    return ("float32" if precision == "tf32" else precision) in policies
