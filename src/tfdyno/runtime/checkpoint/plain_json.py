"""What a checkpoint says beside the weights: plain values as strict JSON that knows its own sum.

JSON has no NaN, no tuples and no arrays, and a history has all of them. They are written as
objects with one key that starts with ``$``; arrays go to the data file and leave their key here.
"""

from __future__ import annotations

import json
import math
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.base.untyped import Value

Arrays = dict[str, np.ndarray[Any, Any]]
DEEPEST = 20
"""Levels of nesting: more than any state has, less than a structure that holds itself."""
_SUM = "crc32"


class NotPlainError(ValueError):
    """A value is no number, text, array, list, tuple or dictionary of these."""


def to_plain(value: object, arrays: Arrays, where: str, depth: int = 0) -> Value:
    """Turn a value into what JSON can hold; copies of arrays are put into ``arrays``.

    Args:
        value: Numbers (also numpy's), texts, None, arrays, lists, tuples and dictionaries.
        arrays: Receives each array under the place where it was found.
        where: The place of ``value``, for keys and messages.
        depth: How many levels lie above.

    Raises:
        NotPlainError: Something else is inside, or an array of Python objects.
    """
    if depth > DEEPEST:
        raise NotPlainError(f"{where} is nested too deeply")
    if isinstance(value, np.generic):
        value = float(value) if value.dtype.isbuiltin == 2 else value.item()  # 2: bfloat16
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": str(value)}
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject or value.dtype.names:
            raise NotPlainError(f"{where} is an array of Python objects")
        arrays[where] = value.copy()
        return {"$array": where}
    if isinstance(value, list | tuple):
        items = [to_plain(v, arrays, f"{where}[{i}]", depth + 1) for i, v in enumerate(value)]
        return items if isinstance(value, list) else {"$tuple": items}
    if isinstance(value, dict):
        return _plain_dictionary(value, arrays, where, depth)
    raise NotPlainError(f"{where} is a {type(value).__name__}")


def _plain_dictionary(
    value: dict[Any, Any], arrays: Arrays, where: str, depth: int
) -> dict[str, Any]:
    def inner(key: object) -> Value:
        return to_plain(value[key], arrays, f"{where}.{key}", depth + 1)

    if all(isinstance(key, str) for key in value):
        return {f"${key}" if key.startswith("$") else key: inner(key) for key in value}
    keys = [(to_plain(key, arrays, f"{where} (key)", depth + 1), inner(key)) for key in value]
    return {"$items": [list(pair) for pair in keys]}


def from_plain(value: Value, arrays: Mapping[str, Any]) -> Value:
    """Return the value that ``to_plain`` was given, with numpy's numbers as Python's."""
    if isinstance(value, list):
        return [from_plain(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((key, content),) = value.items()
        if key == "$float":
            return float(content)
        if key == "$array":
            return arrays[content]
        if key == "$tuple":
            return tuple(from_plain(item, arrays) for item in content)
        if key == "$items":
            return {from_plain(k, arrays): from_plain(v, arrays) for k, v in content}
    return {key.removeprefix("$"): from_plain(item, arrays) for key, item in value.items()}


def sealed(content: dict[str, Any]) -> bytes:
    """Return JSON with its own sum as the last key, so that a reader notices a changed byte."""
    return _text({**content, _SUM: zlib.crc32(_text(content))})


def unsealed(data: bytes) -> dict[str, Any]:
    """Return the content of ``sealed``.

    Raises:
        ValueError: It is not JSON, or not what was written.
    """
    content = json.loads(data)
    if not isinstance(content, dict) or content.pop(_SUM, None) != zlib.crc32(_text(content)):
        raise ValueError("its sum does not match")
    return content


def _text(content: dict[str, Any]) -> bytes:
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
