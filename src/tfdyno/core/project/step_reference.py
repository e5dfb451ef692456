"""What a step says of another step's output: ``{train}``, ``{train.model}``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OWN = "output"
"""``{output}`` is the folder of the step itself."""
_PATTERN = re.compile(r"\{\{|\}\}|\{([A-Za-z0-9_-]+)((?:\.[A-Za-z0-9_:-]+)*)\}")
_NAMES = ("format", "name", "id")
"""Keys by which an item of a list is found: ``{export.formats.savedmodel.path}``."""


def named(value: object) -> tuple[str, ...]:
    """Return the steps that a value refers to, each once, in order; the step itself is not one."""
    return tuple(dict.fromkeys(name for name, _ in references(value)))


def own_keys(value: object) -> str:
    """Return what a value asks of the step's own answer, which is not there yet; empty: nothing."""
    found = (match for text in texts(value) for match in _PATTERN.finditer(text))
    return next((match[2][1:] for match in found if match[1] == OWN and match[2]), "")


def references(value: object) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Name each other step that a value refers to, with the keys of its answer."""
    for text in texts(value):
        for match in _PATTERN.finditer(text):
            if match[1] and match[1] != OWN:
                yield match[1], tuple(match[2].split(".")[1:])


def has_reference(value: object) -> bool:
    """Return whether there is anything in it to be filled."""
    return any(match[1] for text in texts(value) for match in _PATTERN.finditer(text))


def texts(value: object) -> Iterator[str]:
    """Collect all strings of an option's value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from texts(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from texts(one)


def filled(value: object, find: Callable[[str, tuple[str, ...]], str]) -> object:
    """Return the value with every reference replaced; ``{{`` and ``}}`` become single braces.

    Args:
        value: A string, number or flag, or a list of them.
        find: Gives the text for a step's name and the keys behind it.
    """
    if isinstance(value, str):
        return _PATTERN.sub(lambda match: _one(match, find), value)
    if isinstance(value, list | tuple):
        return [filled(one, find) for one in value]
    if isinstance(value, dict):
        return {name: filled(one, find) for name, one in value.items()}
    return value


def _one(match: re.Match[str], find: Callable[[str, tuple[str, ...]], str]) -> str:
    if not match[1]:
        return match[0][0]
    return find(match[1], tuple(match[2].split(".")[1:]))


def looked_up(document: object, step: str, keys: tuple[str, ...]) -> str:
    """Return the value in a step's document, as text.

    An item of a list is found by its number or by its ``format``, ``name`` or ``id``.

    Raises:
        UsageError: There is no such key, or what stands there is no single value.
    """
    found: Any = document
    for place, key in enumerate(keys):
        inner = _inner(found, key)
        if inner is None:
            where = ".".join((step, *keys[:place]))
            there = ", ".join(_offered(found)[:12])
            raise UsageError(
                f"{{{'.'.join((step, *keys))}}} names nothing",
                why=f"{where} has no {key}" + (f"; there are {there}" if there else ""),
                remedy=f"look into the document of step {step}",
            )
        found = inner
    if isinstance(found, dict | list):
        raise UsageError(
            f"{{{'.'.join((step, *keys))}}} is no single value",
            why=f"it holds {', '.join(_offered(found)[:12]) or 'nothing'}",
            remedy="name one of them",
        )
    if isinstance(found, bool):
        return str(found).lower()
    return str(found)


def _inner(value: object, key: str) -> object:
    if isinstance(value, dict):
        return value.get(key)
    if isinstance(value, list):
        if key.isdecimal():
            return value[int(key)] if int(key) < len(value) else None
        items = (one for one in value if isinstance(one, dict))
        return next((one for one in items if key in map(one.get, _NAMES)), None)
    return None


def _offered(value: object) -> list[str]:
    if isinstance(value, dict):
        return [str(name) for name in value]
    if isinstance(value, list):
        return [
            next(
                (str(one[name]) for name in _NAMES if isinstance(one, dict) and name in one), str(i)
            )
            for i, one in enumerate(value)
        ]
    return []
