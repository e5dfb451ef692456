"""Settings of a recipe in words."""

from __future__ import annotations

from tfdyno.core.base.units import format_bytes
from tfdyno.core.recipe.recipe import Recipe, flat
from tfdyno.core.recipe.recipe_reading import TENSORFLOW_CHOOSES
from tfdyno.core.recipe.recipe_words import UNITS
from tfdyno.words.base.amounts import plural
from tfdyno.words.base.language import say, say_later

_LEFT = {
    "precision": say_later("the script's own"),
    "execution": say_later("what Keras chooses"),
    "batch_size": say_later("the script's own"),
    "remat": say_later("nothing||remat"),
    "ema": say_later("the optimizer's own"),
    "ema_overwrite": say_later("only at the end"),
    "clip_norm": say_later("the optimizer's own"),
    "loss_scale": say_later("found while training"),
    "strategy": say_later("the script's own"),
    "devices": say_later("all cards"),
    "memory_limit_bytes": say_later("none"),
    "memory_fraction": say_later("all that is free"),
    "visible_devices": say_later("all cards"),
    "threads_intra": say_later("TensorFlow's choice"),
    "threads_inter": say_later("TensorFlow's choice"),
    "seed": say_later("drawn anew"),
    "input.prefetch": say_later("as the pipeline has it"),
    "input.parallel_calls": say_later("as the pipeline has it"),
    "input.shuffle_buffer": say_later("as the pipeline has it"),
    "input.deterministic": say_later("as the pipeline has it"),
    "input.private_threads": say_later("TensorFlow's own, shared"),
}
"""What a setting means that is left as it is; the others say it themselves."""


def value_words(name: str, value: object) -> str:
    """Write a setting's value, by its flat name, with its unit or with what leaving it means."""
    if name in _LEFT and value == flat(Recipe())[name]:
        return say(_LEFT[name])
    if name.startswith("input.") and value == TENSORFLOW_CHOOSES:
        return say("TensorFlow's choice")
    if name.endswith("_bytes") and isinstance(value, int):
        return format_bytes(value)
    if isinstance(value, bool):
        return str(value).lower()
    if name in UNITS and isinstance(value, int):
        return plural(value, _one(UNITS[name]), UNITS[name])
    return f"{value:,}" if isinstance(value, int) and name != "seed" else str(value)


def _one(units: str) -> str:
    """Write ``batches`` as ``batch``, ``samples`` as ``sample``."""
    return units.removesuffix("es") if units.endswith("ches") else units.removesuffix("s")
