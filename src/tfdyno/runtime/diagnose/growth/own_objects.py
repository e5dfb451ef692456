"""What the user's code holds: its lists, dicts, arrays and texts, by the names it has for them.

Looked into are the globals of the user's modules, the locals of the functions that are running,
callbacks, and objects of the user's own classes. Nothing is called, copied or kept.
"""

from __future__ import annotations

import contextlib
import linecache
import re
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import FrameType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf

from tfdyno.process.own_lines import own_file, place_of

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Model, Value

MOST_OBJECTS = 20_000
_DEEP = 5
_FEW = 48
"""The last ones of a longer list that are looked into: those are new."""
_LAST = 3
_SAMPLE = 8
_MOST_PARTS = 200
TENSOR_BYTES = 900
"""Bytes of an eager tensor beside its values: Python object, handle, buffer; measured as the growth
of resident memory over 50,000 scalars (924 bytes, TensorFlow 2.21 on a CPU)."""
_LISTS = (list, deque, set)
_TEXTS = (str, bytes, bytearray)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Something that can grow, found under a name."""

    name: str
    """The name as the code has it: ``losses``, ``self.seen``, ``History.rows``."""
    file: str
    """The file of the code that has it."""
    size: int
    """Elements of a list or dict; bytes of an array or text."""
    is_bytes: bool = False
    of_callback: bool = False
    """Whether a callback of Keras keeps it."""
    value: Any = None
    """Only of use while the object that was found is alive: do not keep it."""


def held(roots: Sequence[tuple[str, str, Any]]) -> Iterator[Held]:
    """Yield all that can grow under some roots, each object once.

    Args:
        roots: Name, file and value of each place to begin at.
    """
    waiting = deque((name, file, value, 0, False) for name, file, value in roots)
    seen: set[int] = set()
    while waiting and len(seen) < MOST_OBJECTS:
        name, file, value, depth, of_callback = waiting.popleft()
        if id(value) in seen or isinstance(value, ModuleType | bool | int | float):
            continue
        seen.add(id(value))
        of_callback = of_callback or isinstance(value, keras.callbacks.Callback)
        try:
            one = _measured(name, file, value)
            parts = list(_parts(name, file, value)) if depth < _DEEP else []
        except Exception:
            continue
        if one:
            yield replace(one, of_callback=of_callback)
        waiting += ((*part, depth + 1, of_callback) for part in parts)


def roots(callbacks: Sequence[Any] = (), model: Model = None) -> list[tuple[str, str, Any]]:
    """List where the user's code keeps things: modules, running functions, callbacks, the model."""
    found: list[tuple[str, str, Any]] = []
    spaces: set[int] = set()
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and file.endswith(".py") and own_file(file) and _no_tool(module):
            spaces.add(id(vars(module)))
            found += [(name, file, value) for name, value in list(vars(module).items())]
    for frame in _own_frames():
        file = frame.f_code.co_filename
        known = frame.f_globals if frame.f_code.co_name == "<module>" else frame.f_locals
        if id(known) not in spaces:
            spaces.add(id(known))
            found += [(name, file, value) for name, value in list(known.items())]
    found += [(type(one).__name__, _file(one), one) for one in callbacks]
    if model is not None:
        found.append(("model", _file(model), model))
    return [(name, file, value) for name, file, value in found if not name.startswith("__")]


def kind_of(value: Value) -> str:
    """Tell of what it is that grows: ``tensors``, ``functions``, ``iterators`` or ``objects``."""
    sample = _sample(value) if not isinstance(value, np.ndarray | tf.Tensor) else [value]
    for one in [part for each in sample for part in _flat(each)]:
        if isinstance(one, tf.Tensor | tf.Variable) or is_of_jax(one):
            return "tensors"
        if type(one).__name__ in ("Function", "ConcreteFunction") and "tensorflow" in _module(one):
            return "functions"
        if isinstance(one, tf.data.Iterator | tf.data.Dataset):
            return "iterators"
    return "objects"


def is_of_jax(value: Value) -> bool:
    """Return whether it is an array of JAX, where that was imported."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.Array)


def element_bytes(value: Value) -> float:
    """Average the bytes of a list's or dict's last elements; the same object counts once."""
    sample = _sample(value)
    if not sample:
        return 0.0
    unlike = {id(one): one for one in sample}
    if len(sample) > 1 and len(unlike) == 1:
        return 8.0  # one object again and again: only the pointer grows
    return 8.0 + sum(map(deep_bytes, sample)) / len(sample)


def deep_bytes(value: Value) -> float:
    """Return bytes that an object holds, roughly: arrays' and tensors' values, Python's sizes."""
    return sum(_bytes(part) for part in _flat(value, with_containers=True))


def grown_at(one: Held) -> str:
    """Return ``train.py:31``, the line that makes it grow; else its first name; else the file."""
    short = one.name.rpartition(".")[2].partition("[")[0]
    if not one.file or not short:
        return ""
    grows = re.compile(
        rf"\b{re.escape(short)}\b(\[.*?\])*\s*(\.(append|appendleft|extend|add|insert|update|"
        rf"setdefault|write)\(|\+=|\[[^\]]*\]\s*=[^=])|\b{re.escape(short)}\s*=\s*.*\b"
        rf"(concat|concatenate|append|vstack|hstack|stack)\("
    )
    named = re.compile(rf"\b{re.escape(short)}\s*(:[^=]*)?=[^=]")
    lines = linecache.getlines(one.file)
    for pattern in (grows, named):
        for number, line in enumerate(lines, 1):
            if pattern.search(line.partition("#")[0]):
                return place_of(one.file, number)
    return place_of(one.file, 0).rpartition(":")[0]


def _measured(name: str, file: str, value: Value) -> Held | None:
    if isinstance(value, (*_LISTS, dict)):
        return Held(name=name, file=file, size=len(value), value=value)
    if isinstance(value, _TEXTS):
        return Held(name=name, file=file, size=len(value), is_bytes=True, value=value)
    if isinstance(value, np.ndarray):
        return Held(name=name, file=file, size=value.nbytes, is_bytes=True, value=value)
    if is_of_jax(value):
        return Held(name=name, file=file, size=value.nbytes, is_bytes=True, value=value)
    if isinstance(value, tf.Tensor) and hasattr(value, "_handle_data"):
        return Held(name=name, file=file, size=_tensor_bytes(value), is_bytes=True, value=value)
    return None


def _parts(name: str, file: str, value: Value) -> Iterator[tuple[str, str, Any]]:
    if isinstance(value, dict):
        items = list(value.items())
        for key, one in items if len(items) <= _FEW else items[-_LAST:]:
            yield f"{name}[{key!r:.24}]" if isinstance(key, str | int) else name, file, one
    elif isinstance(value, (*_LISTS, tuple)):
        every = list(value) if len(value) <= _FEW else _sample(value)[-_LAST:]
        yield from ((f"{name}[{number}]", file, one) for number, one in enumerate(every))
    elif isinstance(value, FunctionType):
        yield from _closed_over(name, value)
    elif isinstance(value, type):
        if own := _own_file_of(value):
            yield from _attributes(name, own, value)
    elif (own := _own_file_of(type(value))) or isinstance(value, keras.callbacks.Callback):
        yield from _attributes(name, own or file, value)
        if own:
            yield type(value).__name__, own, type(value)


def _closed_over(name: str, function: FunctionType) -> Iterator[tuple[str, str, Any]]:
    file = function.__code__.co_filename
    if not own_file(file):
        return
    cells = function.__closure__ or ()
    for title, cell in zip(function.__code__.co_freevars, cells, strict=False):
        with contextlib.suppress(ValueError):  # empty so far
            yield title, file, cell.cell_contents
    yield from ((name, file, one) for one in function.__defaults__ or ())


def _attributes(name: str, file: str, value: Value) -> Iterator[tuple[str, str, Any]]:
    for key, one in list(getattr(value, "__dict__", {}).items()):
        if not key.startswith("__") and key != "_model":
            yield f"{name}.{key}", file, one


def _own_frames() -> Iterator[FrameType]:
    for first in sys._current_frames().values():
        frame: FrameType | None = first
        while frame:
            if own_file(frame.f_code.co_filename):
                yield frame
            frame = frame.f_back


def _no_tool(module: ModuleType) -> bool:
    return module.__name__.partition(".")[0] != "tfdyno"


def _own_file_of(kind: type) -> str:
    """Return the file of a class of the user's; empty for classes of packages."""
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None) or ""
    if module is None or not file or not file.endswith(".py"):
        return ""
    return file if own_file(file) and _no_tool(module) else ""


def _file(value: Value) -> str:
    return _own_file_of(type(value))


def _module(value: Value) -> str:
    return type(value).__module__


def _sample(value: Value) -> list[Any]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, set):
        return [one for one, _ in zip(value, range(_SAMPLE), strict=False)]
    return list(value)[-_SAMPLE:] if isinstance(value, list | tuple | deque) else []


def _flat(value: Value, *, with_containers: bool = False) -> list[Any]:
    found: list[Any] = []
    waiting, seen = [value], set()
    while waiting and len(found) < _MOST_PARTS:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        is_container = isinstance(one, (dict, list, tuple, set, deque))
        if not is_container or with_containers:
            found.append(one)
        if isinstance(one, dict):
            waiting += one.values()
        elif is_container:
            waiting += list(one)
        elif _own_file_of(type(one)) and hasattr(one, "__dict__"):
            waiting += vars(one).values()
    return found


def _bytes(one: Value) -> float:
    if isinstance(one, np.ndarray) or is_of_jax(one):
        return float(one.nbytes) + sys.getsizeof(0)
    if isinstance(one, tf.Tensor | tf.Variable):
        return TENSOR_BYTES + _tensor_bytes(one)
    try:
        return float(sys.getsizeof(one))
    except TypeError:
        return 0.0


def _tensor_bytes(one: Value) -> int:
    count = one.shape.num_elements() if one.shape.rank is not None else None
    return int(count or 0) * int(getattr(tf.as_dtype(one.dtype), "size", 0) or 0)
