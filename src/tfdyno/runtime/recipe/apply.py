"""A recipe applied to TensorFlow, before a model is there, and checked against what it reports."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.base.units import MIB
from tfdyno.runtime.base.replaced import ignored, replaced
from tfdyno.runtime.base.tensorflow_internals import (
    is_deterministic,
    session_config,
    set_session_config,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from tfdyno.core.choose.workload import Mode
    from tfdyno.core.recipe.recipe import Recipe

FLOAT8_POLICY = "mixed_bfloat16"
"""What Keras' float8 layers compute everything else in."""
TRAINING_ONLY = {"accumulation": 1, "clip_norm": 0.0}
OF_OPTIMIZER = {**TRAINING_ONLY, "ema": 0.0, "loss_scale": 0.0}
"""Settings that the optimizer of ``compile`` does."""
OWN_LOOP = {**TRAINING_ONLY, "steps_per_execution": 1, "batch_size": 0}
"""Settings that only Keras' own loop can take, with the values that mean nothing is asked."""


def check_recipe(recipe: Recipe, mode: Mode) -> None:
    """Refuse a setting of training where nothing is trained; raises ``UsageError``.

    Which settings exclude each other was checked before (``core.recipe.composition``).
    """
    if mode == "infer":
        for name in asked(recipe, TRAINING_ONLY):
            raise UsageError(f"{name} is a setting of training", remedy="leave it out for infer")


def policy_of(precision: str) -> str:
    """Return the dtype policy that a model is built under for a precision; empty: its own."""
    return FLOAT8_POLICY if precision == "float8" else precision


def asked(recipe: Recipe, defaults: dict[str, Any]) -> list[str]:
    """Return the names among ``defaults`` that a recipe sets to something else."""
    return [name for name, value in defaults.items() if getattr(recipe, name) != value]


def apply_recipe(recipe: Recipe) -> list[str]:
    """Set everything that must stand before TensorFlow touches a device; returns notes.

    Raises:
        UsageError: A memory limit is asked for where there is no GPU.
    """
    import keras
    import tensorflow as tf

    notes = []
    if recipe.threads_intra:
        tf.config.threading.set_intra_op_parallelism_threads(recipe.threads_intra)
    if recipe.threads_inter:
        tf.config.threading.set_inter_op_parallelism_threads(recipe.threads_inter)
    if recipe.precision in ("float32", "tf32"):
        tf.config.experimental.enable_tensor_float_32_execution(recipe.precision == "tf32")
    _set_devices(recipe)
    if recipe.deterministic:
        tf.config.experimental.enable_op_determinism()
        if recipe.seed is None:
            notes.append("deterministic needs a seed: 0.")
    if recipe.deterministic or recipe.seed is not None:
        keras.utils.set_random_seed(recipe.seed or 0)
    return notes


def _set_devices(recipe: Recipe) -> None:
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    _check_devices(recipe, len(gpus))
    if recipe.memory_limit_bytes:
        for gpu in gpus:
            limit = tf.config.LogicalDeviceConfiguration(recipe.memory_limit_bytes / MIB)
            tf.config.set_logical_device_configuration(gpu, [limit])
    elif recipe.memory_growth:
        for gpu in gpus:
            tf.config.experimental.set_memory_growth(gpu, True)
    if recipe.memory_fraction:
        set_memory_fraction(recipe.memory_fraction)


def set_memory_fraction(fraction: float) -> None:
    """Let TensorFlow take this part of each card's memory, to 1.

    ``tf.config`` has no call for it: the option belongs to the session that TensorFlow 1 opened,
    and TensorFlow 2 still reads it from there (``GPUOptions.per_process_gpu_memory_fraction``).

    Raises:
        ToolError: TensorFlow has opened its devices already.
    """
    from tensorflow.core.protobuf import config_pb2

    options = config_pb2.GPUOptions(per_process_gpu_memory_fraction=fraction)
    if not set_session_config(config_pb2.ConfigProto(gpu_options=options)):
        what = f"memory_fraction = {fraction:g} comes too late"
        raise ToolError(what, why="TensorFlow has opened its devices already")


def _check_devices(recipe: Recipe, count: int) -> None:
    for name in ("memory_limit_bytes", "memory_fraction"):
        if getattr(recipe, name) and not count:
            raise UsageError(f"{name} needs a GPU", why="TensorFlow sees none here")
    numbers = [part for part in recipe.visible_devices.split(",") if part.strip()]
    if numbers and "-1" not in numbers and count != len(numbers):
        cards = f"{len(numbers)} card{'s' * (len(numbers) > 1)}"
        what = f"visible_devices = {recipe.visible_devices} names {cards}"
        remedy = "give numbers as nvidia-smi shows them, and see tfdyno doctor"
        raise UsageError(what, why=f"TensorFlow sees {count}", remedy=remedy)


def settings_held(recipe: Recipe, notes: list[str]) -> AbstractContextManager[None]:
    """Keep what the recipe sets: calls of the user's code that set the same do nothing.

    Each call that is left out is noted once in ``notes``.
    """
    import tensorflow as tf

    held: dict[tuple[Any, str], str] = {}
    threading, experimental = tf.config.threading, tf.config.experimental
    if recipe.threads_intra:
        held[threading, "set_intra_op_parallelism_threads"] = "threads_intra"
    if recipe.threads_inter:
        held[threading, "set_inter_op_parallelism_threads"] = "threads_inter"
    if recipe.precision in ("float32", "tf32"):
        held[experimental, "enable_tensor_float_32_execution"] = "precision"
    if recipe.memory_limit_bytes or recipe.memory_fraction:
        name = "memory_limit_bytes" if recipe.memory_limit_bytes else "memory_fraction"
        held[tf.config, "set_logical_device_configuration"] = name
    if recipe.memory_growth or recipe.memory_limit_bytes:
        held[experimental, "set_memory_growth"] = "memory_growth"
    if recipe.visible_devices:
        held[tf.config, "set_visible_devices"] = "visible_devices"
    changes = []
    for (module, name), setting in held.items():
        note = f"The code calls {name}; {setting} of the recipe holds."
        changes.append((module, name, ignored(note, notes)))
    return replaced(*changes)


def reported(recipe: Recipe) -> dict[str, Any]:
    """Return what TensorFlow says of its process' settings that a recipe asks for, by name."""
    import tensorflow as tf

    cards = tf.config.list_physical_devices("GPU")
    read: dict[str, Callable[[], Any]] = {
        "threads_intra": tf.config.threading.get_intra_op_parallelism_threads,
        "threads_inter": tf.config.threading.get_inter_op_parallelism_threads,
        "memory_limit_bytes": lambda: limit_bytes(cards),
        "memory_fraction": _memory_fraction,
        "deterministic": is_deterministic,
    }
    if cards:
        growth = tf.config.experimental.get_memory_growth
        read["memory_growth"] = lambda: all(growth(card) for card in cards)
    return {name: ask() for name, ask in read.items() if getattr(recipe, name)}


def verify(recipe: Recipe) -> None:
    """Compare what TensorFlow reports with the recipe, after the first step.

    Raises:
        ToolError: TensorFlow did not take a setting.
    """
    import tensorflow as tf

    for name, has in reported(recipe).items():
        wanted = getattr(recipe, name)
        if not math.isclose(has, wanted, rel_tol=1e-6):  # true and false are numbers
            what = f"TensorFlow did not take {name} = {str(wanted).lower()}"
            raise ToolError(what, why=f"it has {str(has).lower()}")
    switch = tf.config.experimental.tensor_float_32_execution_enabled()
    if recipe.precision in ("float32", "tf32") and switch != (recipe.precision == "tf32"):
        raise ToolError(f"TensorFlow did not take precision = {recipe.precision}")


def limit_bytes(cards: list[Any]) -> int:
    """Return the limit of memory that all cards have; 0: they differ, or have none."""
    import tensorflow as tf

    found = set()
    for card in cards:
        parts = tf.config.get_logical_device_configuration(card) or []
        found.add(int((parts[0].memory_limit or 0) * MIB) if len(parts) == 1 else 0)
    return found.pop() if len(found) == 1 else 0


def _memory_fraction() -> float:
    return float(session_config().gpu_options.per_process_gpu_memory_fraction)
