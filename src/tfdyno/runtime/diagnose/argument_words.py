"""What a ``tf.function`` was called with, and in which words two calls differ.

Only shapes, types and short texts are kept, never the values themselves.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Shape, Value

Leaf = tuple[str, ...]
"""``("tensor", shape, dtype)``, ``("value", text)`` or ``("object", type, identity)``."""
Description = dict[str, Leaf]

_MOST_LEAVES = 64
_MOST_LETTERS = 24
_MOST_DIFFERENCES = 2


def described(
    function: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]
) -> Description:
    """Name all arguments, structures taken apart: ``x``, ``x['image']``, ``x[0]``."""
    found: Description = {}
    for name, value in _named(function, args, named):
        for path, leaf in _leaves(name, value):
            found[path] = leaf
            if len(found) >= _MOST_LEAVES:
                return found
    return found


def difference(earlier: Sequence[Description], now: Description) -> str:
    """Return how the arguments differ from those of the most similar earlier trace.

    Returns:
        ``argument x: shape (32, 8) -> (31, 8)``; where no argument differs, that something else
        did that TensorFlow traces for.
    """
    told = [_differences(one, now) for one in earlier]
    if not told:
        return ""
    nearest = min(reversed(told), key=len)
    if not nearest:
        return "no argument: a variable, a device or a setting that it uses"
    return "; ".join(nearest[:_MOST_DIFFERENCES])


def _differences(before: Description, now: Description) -> list[str]:
    found = []
    for path in dict.fromkeys([*before, *now]):
        one, two = before.get(path), now.get(path)
        if one is None or two is None:
            change = "structure: it appeared" if one is None else "structure: it is gone"
            found.append(f"argument {path}: {change}")
        elif one != two:
            found.append(f"argument {path}: {_change(one, two)}")
    return found


def _change(one: Leaf, two: Leaf) -> str:
    if one[0] != two[0]:
        return f"{_kind(one)} -> {_kind(two)}"
    if one[0] == "tensor":
        parts = [f"shape {one[1]} -> {two[1]}"] if one[1] != two[1] else []
        parts += [f"{one[2]} -> {two[2]}"] if one[2] != two[2] else []
        return ", ".join(parts)
    if one[0] == "object" and one[1] == two[1]:
        return f"another {one[1]}"
    return f"{one[1]} -> {two[1]}"


def _kind(leaf: Leaf) -> str:
    return "a tensor" if leaf[0] == "tensor" else f"{leaf[0]} {leaf[1]}"


def _named(
    function: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]
) -> list[tuple[str, Any]]:
    try:
        bound = inspect.signature(function).bind_partial(*args, **named).arguments
    except (TypeError, ValueError):
        return [(str(number), one) for number, one in enumerate(args)] + list(named.items())
    return list(bound.items())


def _leaves(path: str, value: Value) -> Iterator[tuple[str, Leaf]]:
    spec = getattr(value, "element_spec", None)
    if spec is not None:  # an iterator or a dataset: what it gives
        yield from _leaves(path, spec)
    elif isinstance(value, Mapping):
        for key in value:
            yield from _leaves(f"{path}[{key!r}]", value[key])
    elif isinstance(value, list | tuple):
        for number, one in enumerate(value):
            yield from _leaves(f"{path}[{number}]", one)
    else:
        yield path, _leaf(value)


def _leaf(value: Value) -> Leaf:
    if isinstance(value, bool | int | float | complex | str | bytes) or value is None:
        return "value", repr(value)[:_MOST_LETTERS]
    if isinstance(value, tf.Variable):
        return "object", f"Variable {value.shape}", str(id(value))
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        try:
            shape = "of any rank" if value.shape is None else str(_sizes(value.shape))
            return "tensor", shape, tf.as_dtype(value.dtype).name
        except (TypeError, ValueError):
            pass
    return "object", type(value).__name__, str(id(value))


def _sizes(shape: Shape) -> Value:
    known = tf.TensorShape(shape)
    return "of any rank" if known.rank is None else tuple(known.as_list())
