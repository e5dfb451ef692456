"""Values of settings as they are typed or stand in TOML, read in the type of their setting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.units import parse_bytes

BLOCKS = "blocks"
"""Remat of whole blocks of layers."""
TENSORFLOW_CHOOSES = -1
"""``tf.data.AUTOTUNE``: as many as pay, tuned while the input runs."""
KERAS_MOMENTUM = 0.99
"""``ema_momentum`` of ``keras.optimizers.Optimizer`` where none is given."""
_BOOLEANS = {"true": True, "false": False}
_OFF = ("false", "off", "none", "")
_OWN_NUMBER = ("input.prefetch", "input.parallel_calls")
"""Numbers that TensorFlow can choose by itself."""


def read(given: Mapping[str, object], kinds: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings by their flat names, each in the type of its field.

    Args:
        given: Names with values; ``input`` may hold a table of its own.
        kinds: The types of all settings by their flat names, as they are written in their class.

    Raises:
        UsageError: A name is not known (tells the nearest), or a value has a wrong type.
    """
    found = {}
    for name, value in _flattened(given).items():
        settings.one_of(name, kinds, "setting")
        found[name] = _read(name, value, kinds[name])
    return found


def _flattened(given: Mapping[str, object]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in given.items():
        if name == "input":
            if not isinstance(value, Mapping):
                remedy = "write input.prefetch=4, or in a file a table [input]"
                raise UsageError(f"input = {value} is not possible", remedy=remedy)
            found |= {f"input.{inner}": one for inner, one in value.items()}
        else:
            found[name] = value
    return found


def _read(name: str, value: object, kind: str) -> str | bool | int | float | None:
    text = str(value).strip()
    if kind.endswith("| None") and text.lower() == "none":
        return None
    if kind.startswith("bool"):
        return _boolean(name, text)
    if kind in {"str", "Execution", "Strategy"}:
        return _remat(value, text) if name == "remat" else _name(name, value, text)
    if name == "ema" and text.lower() in _BOOLEANS:
        return KERAS_MOMENTUM if _BOOLEANS[text.lower()] else 0.0
    if name in _OWN_NUMBER and text.lower() == "auto":
        return TENSORFLOW_CHOOSES
    if isinstance(value, bool):
        raise UsageError(f"{name} = {text.lower()} is not a number")
    return _number(name, value, text, kind)


def _boolean(name: str, text: str) -> bool:
    if text.lower() in _BOOLEANS:
        return _BOOLEANS[text.lower()]
    raise UsageError(f"{name} = {text} is not possible", remedy="give true or false")


def _name(name: str, value: object, text: str) -> str:
    if isinstance(value, str) or (name == "visible_devices" and isinstance(value, int)):
        return text
    raise UsageError(f"{name} = {value} is not a name", remedy='put it in quotes: "..."')


def budget_bytes(remat: str) -> int:
    """Read the bytes that activations may take under a ``remat``; 0: ``blocks``, or layers' names.

    Raises:
        UsageError: It begins as an amount of memory, as no name of a layer does, and is none.
    """
    if not remat or not (remat[0].isdigit() or remat[0] in "-+."):
        return 0
    found = int(parse_bytes(remat))
    if found < 1:
        raise UsageError(f"remat = {remat} is not possible", remedy="write it as 8GiB")
    return found


def _remat(value: object, text: str) -> str:
    if not isinstance(value, str | int):
        what = f"remat = {value} is not possible"
        raise UsageError(what, remedy='give true, a budget as "8GiB", or names of layers')
    if text.lower() in _OFF or (isinstance(value, int) and value == 0):
        return ""
    return BLOCKS if text.lower() == "true" else text


def _number(name: str, value: object, text: str, kind: str) -> int | float:
    if isinstance(value, int):  # whole numbers of any size, that a float would round
        return float(value) if kind == "float" else value
    found = parse_bytes(text) if name == "memory_limit_bytes" else settings.number(text, name)
    if kind == "float":
        return found
    if found != int(found):
        raise UsageError(f"{name} = {value} is not possible", remedy="give a whole number")
    digits = text.replace("_", "").lstrip("+-")
    return int(text) if digits.isdecimal() else int(found)
