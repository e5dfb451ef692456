"""A ``.keras`` file without its weights: the model comes from its configuration alone."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.process.failure import Declined, first_line

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.base.untyped import Value


def load_config(path: Path, *, allow_unsafe: bool) -> Value:
    """Return the model of a ``.keras`` file, compiled if it was saved compiled.

    Raises:
        UsageError: It is no ``.keras`` file, or it holds a lambda and ``allow_unsafe`` is not set.
        Declined: Keras cannot build it, for example for want of a custom class.
    """
    config = _config(path)
    if not allow_unsafe and _has_lambda(config):
        raise UsageError(
            f"{path} holds a lambda",
            why="loading it runs code from the file",
            remedy="allow it with --unsafe only if you trust where the file comes from",
        )
    import keras

    try:
        return keras.saving.deserialize_keras_object(config, safe_mode=not allow_unsafe)
    except Exception as error:
        remedy = "name a function that builds the model: file.py:function"
        raise Declined(f"{path} cannot be loaded", why=first_line(error), remedy=remedy) from None


def has_lambda(path: Path) -> bool:
    """Return whether loading the file would run its code; raises as ``load_config``."""
    return _has_lambda(_config(path))


def _config(path: Path) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(path) as archive:
            config: dict[str, Any] = json.loads(archive.read("config.json"))
    except (zipfile.BadZipFile, KeyError, ValueError):
        remedy = "save the model again with model.save('name.keras')"
        raise UsageError(f"{path} is not a Keras 3 model file", remedy=remedy) from None
    return config


def _has_lambda(part: Value) -> bool:
    if isinstance(part, dict):
        return part.get("class_name") == "__lambda__" or any(map(_has_lambda, part.values()))
    return isinstance(part, list) and any(map(_has_lambda, part))
