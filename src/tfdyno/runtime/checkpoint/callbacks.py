"""What callbacks know at a step: counters, best values, arrays; as plain values, never pickled."""

from __future__ import annotations

import inspect
import types
from typing import TYPE_CHECKING, Any

from tfdyno.runtime.checkpoint.plain_json import NotPlainError, to_plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.base.untyped import Value
    from tfdyno.runtime.checkpoint.plain_json import Arrays

# Set by Keras anew at each start, or true of one process only: a profiler that runs, a clock.
_OF_THE_PROCESS = frozenset(
    "params _model model validation_data _is_tracing _profiler_started _batch_trace_context "
    "_batch_start_time _epoch_start_time _writers _should_write_train_graph".split()
)
_CODE = (
    types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.ModuleType, type,
)  # fmt: skip


def callback_state(callbacks: Sequence[Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the state of each callback, and a note for each attribute that cannot be kept.

    What Keras' own callbacks are constructed with (``patience``, ``min_delta``) is left to the
    script: ReduceLROnPlateau turns the sign of ``min_delta`` at its first epoch, and would again.

    Args:
        callbacks: The script's own, in its order.

    Returns:
        One dictionary per callback, with its class and attributes, for ``extra`` of a checkpoint;
        and the notes.
    """
    states: list[dict[str, Any]] = []
    notes = []
    for callback in callbacks:
        name, kept = type(callback).__name__, {}
        for key, value in vars(callback).items():
            if key in _OF_THE_PROCESS | _settings(type(callback), "keras"):
                continue
            if isinstance(value, _CODE):
                continue
            plain = _without_tensors(value)
            try:
                to_plain(plain, {}, key)
            except NotPlainError as error:
                if key not in _settings(type(callback)) or _has_weights(value):
                    notes.append(f"{name}: {error}, which no checkpoint keeps.")
            else:
                kept[key] = plain
        states.append({"class": name, "attributes": kept})
    return states, notes


def restore_callbacks(callbacks: Sequence[Any], states: Sequence[dict[str, Any]]) -> list[str]:
    """Set the attributes that ``callback_state`` read; to be called after ``on_train_begin``.

    Args:
        callbacks: The script's own, in the same order.
        states: From a checkpoint.

    Returns:
        Notes: which callbacks have no state because the script has others now, and which
        settings of the user's own callbacks continue at another value than the script gives.
    """
    notes = []
    for number, callback in enumerate(callbacks):
        name = type(callback).__name__
        if number >= len(states) or states[number]["class"] != name:
            notes.append(f"{name} starts anew: the checkpoint has no state of it.")
            continue
        settings = _settings(type(callback))
        for key, value in states[number]["attributes"].items():
            if key in settings and _differs(getattr(callback, key, None), value):
                given = getattr(callback, key, None)
                notes.append(f"{name}.{key} continues at {value!r}; the script gives {given!r}.")
            setattr(callback, key, value)
    for state in states[len(callbacks) :]:
        notes.append(f"{state['class']} of the checkpoint is not among the callbacks any more.")
    return notes


def _differs(given: object, kept: object) -> bool:
    arrays: list[Arrays] = [{}, {}]
    try:
        first, second = (to_plain(v, a, "") for v, a in zip((given, kept), arrays, strict=True))
    except NotPlainError:
        return True
    if first != second or arrays[0].keys() != arrays[1].keys():
        return True
    return any((arrays[0][key] != arrays[1][key]).any() for key in arrays[0])


def _settings(kind: type, package: str = "") -> frozenset[str]:
    """Return names of the constructors' parameters in a class and those above it."""
    names: set[str] = set()
    for cls in kind.__mro__:
        if "__init__" in vars(cls) and cls is not object:
            if package and cls.__module__.partition(".")[0] != package:
                continue
            names |= set(inspect.signature(cls.__init__).parameters)  # type: ignore[misc]
    return frozenset(names - {"self", "args", "kwargs"})


def _has_weights(value: object) -> bool:
    """Return whether it is a model or a variable: what it holds changes while one trains."""
    return hasattr(value, "trainable_variables") or hasattr(value, "assign")


def _without_tensors(value: object) -> Value:
    """Turn tensors into numpy's: they never change. Variables do, and stay what they are."""
    if isinstance(value, list | tuple):
        return type(value)(map(_without_tensors, value)) if type(value) in (list, tuple) else value
    if type(value) is dict:
        return {key: _without_tensors(item) for key, item in value.items()}
    is_tensor = type(value).__module__.startswith("tensorflow") and hasattr(value, "numpy")
    if is_tensor and not hasattr(value, "assign"):
        array = value.numpy()  # type: ignore[attr-defined]
        return array.item() if getattr(array, "ndim", 1) == 0 else array
    return value
