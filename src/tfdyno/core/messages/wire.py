"""Nouns as JSON between a process and its child.

Standard library only, because the child may run in the user's own interpreter. Both ends are of one
version, so types are made, not checked: files of users go through ``core.base.codec``.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value

Noun = TypeVar("Noun")
_PLAIN: frozenset[object] = frozenset({str, int, bool, Any})
"""What is in Python as in JSON: of a million it need not be asked one by one."""
_UNIONS: tuple[object, ...] = (typing.Union, types.UnionType)


def encode(noun: object) -> str:
    """Write a noun as one line of JSON."""
    return json.dumps(noun, default=_plain)


def fields_of(noun: object) -> dict[str, Any]:
    """Return the fields of a noun by name, their values as they are."""
    return {one.name: getattr(noun, one.name) for one in dataclasses.fields(noun)}  # type: ignore[arg-type]


def decode(raw: Value, kind: type[Noun]) -> Noun:
    """Make what ``json.loads`` gave into ``kind``.

    Args:
        raw: Dictionaries, lists, strings and numbers, as ``encode`` wrote them.
        kind: A dataclass, or whatever its fields are: tuples, lists, mappings, ``X | None``,
            paths, numbers, texts, ``Any``. Of a union of dataclasses the first is taken that has
            all fields that came.

    Raises:
        TypeError: A field came that the class does not have, one is missing, or what came is no
            dictionary.
    """
    made: Noun = _made(raw, kind)
    return made


def _made(raw: Value, kind: Value) -> Value:
    origin, arguments = typing.get_origin(kind) or kind, typing.get_args(kind)
    if origin in _UNIONS:
        return None if raw is None else _made(raw, _member(raw, arguments))
    if not isinstance(origin, type):  # Any, or a Literal
        return raw
    if dataclasses.is_dataclass(origin):
        if not isinstance(raw, dict):
            raise TypeError(f"{raw!r} is no {origin.__name__}")
        hints = _hints(origin)
        return origin(**{name: _made(value, hints.get(name, Any)) for name, value in raw.items()})
    if isinstance(raw, list) and issubclass(origin, Sequence):
        return _collected(raw, origin, arguments)
    if isinstance(raw, dict) and issubclass(origin, Mapping) and arguments:
        key, value = arguments
        return {int(name) if key is int else name: _made(one, value) for name, one in raw.items()}
    return origin(raw) if issubclass(origin, float | PurePath) else raw


def _collected(raw: list[Value], origin: type, arguments: tuple[Value, ...]) -> Value:
    is_fixed = issubclass(origin, tuple) and arguments[1:] and arguments[1:] != (Ellipsis,)
    kind = Any if not arguments else None if is_fixed else arguments[0]
    if kind in _PLAIN:
        made: Iterable[Value] = raw
    elif kind is float:
        made = map(float, raw)
    else:
        kinds = arguments if is_fixed else (kind,) * len(raw)
        made = (_made(one, kind) for one, kind in zip(raw, kinds, strict=True))
    return list(made) if issubclass(origin, list) else tuple(made)


def _member(raw: Value, kinds: tuple[Value, ...]) -> Value:
    """Return the one of a union that a value is: of several only dataclasses are told apart."""
    kinds = tuple(kind for kind in kinds if kind is not types.NoneType)
    if len(kinds) == 1:
        return kinds[0]
    for kind in kinds:
        if not isinstance(kind, type):
            continue
        if dataclasses.is_dataclass(kind) and isinstance(raw, dict):
            if raw.keys() <= _hints(kind).keys():
                return kind
        elif isinstance(raw, kind):
            return kind
    raise TypeError(f"{raw!r} is none of {kinds}")


@functools.cache
def _hints(kind: type) -> dict[str, Value]:
    return typing.get_type_hints(kind)


def _plain(value: object) -> Value:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return fields_of(value)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be sent to or from a child process")
