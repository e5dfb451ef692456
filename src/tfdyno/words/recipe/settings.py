"""Settings of a recipe in words."""

from __future__ import annotations

from tfdyno.core.base.units import format_bytes
from tfdyno.core.recipe.recipe import Recipe, flat
from tfdyno.core.recipe.recipe_reading import TENSORFLOW_CHOOSES
from tfdyno.core.recipe.recipe_words import UNITS

_LEFT = {
    "precision": "the script's own",
    "execution": "what Keras chooses",
    "batch_size": "the script's own",
    "remat": "nothing",
    "ema": "the optimizer's own",
    "ema_overwrite": "only at the end",
    "clip_norm": "the optimizer's own",
    "loss_scale": "found while training",
    "strategy": "the script's own",
    "devices": "all cards",
    "memory_limit_bytes": "none",
    "memory_fraction": "all that is free",
    "visible_devices": "all cards",
    "threads_intra": "TensorFlow's choice",
    "threads_inter": "TensorFlow's choice",
    "seed": "drawn anew",
    "input.prefetch": "as the pipeline has it",
    "input.parallel_calls": "as the pipeline has it",
    "input.shuffle_buffer": "as the pipeline has it",
    "input.deterministic": "as the pipeline has it",
    "input.private_threads": "TensorFlow's own, shared",
}
"""What a setting means that is left as it is; the others say it themselves."""


def value_words(name: str, value: object) -> str:
    """Write a setting's value, by its flat name, with its unit or with what leaving it means."""
    if name in _LEFT and value == flat(Recipe())[name]:
        return _LEFT[name]
    if name.startswith("input.") and value == TENSORFLOW_CHOOSES:
        return "TensorFlow's choice"
    if name.endswith("_bytes") and isinstance(value, int):
        return format_bytes(value)
    if isinstance(value, bool):
        return str(value).lower()
    if name in UNITS and isinstance(value, int):
        return f"{value:,} {_one(UNITS[name]) if value == 1 else UNITS[name]}"
    return f"{value:,}" if isinstance(value, int) and name != "seed" else str(value)


def _one(units: str) -> str:
    """Write ``batches`` as ``batch``, ``samples`` as ``sample``."""
    return units.removesuffix("es") if units.endswith("ches") else units.removesuffix("s")
