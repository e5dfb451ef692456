"""Private names of a framework held against the version that is installed.

The tests that use it need pytest and the framework alone: CONTRIBUTING says how another version is
tried.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tfdyno.core.base.untyped import Module, Value


class BrokenError(Exception):
    """Leaves a block as a failing training does."""


def found(name: str) -> Value:
    """What stands under a dotted name; raises where it is not there."""
    first, *parts = name.split(".")
    value, place = importlib.import_module(first), first
    for part in parts:
        place = f"{place}.{part}"
        # Asked for first: keras.src.backend.numpy is the backend's, and an import would replace it.
        value = getattr(value, part) if hasattr(value, part) else importlib.import_module(place)
    return value


def untaken(name: str, parameters: str) -> list[str]:
    """Which of these parameters, by name, a function or class does not take."""
    taken = inspect.signature(found(name)).parameters
    if any(one.kind is one.VAR_KEYWORD for one in taken.values()):
        return []
    return [one for one in parameters.split() if one not in taken]


def imported(module: Module, prefix: str) -> set[str]:
    """Dotted names below ``prefix`` that a module imports, and attributes of them that it reads."""
    assert module.__file__
    names: set[str] = set()
    for function in ast.parse(Path(module.__file__).read_text()).body:
        nodes, known = list(ast.walk(function)), dict[str, str]()
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(prefix):
                known |= {one.name: f"{node.module}.{one.name}" for one in node.names}
        names |= {name for name in known.values() if not _is_module(name)}
        for node in nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                names |= {f"{known[one]}.{node.attr}" for one in [node.value.id] if one in known}
    return names


def _is_module(name: str) -> bool:
    try:
        return inspect.ismodule(found(name))
    except ImportError:
        return False


def assert_undone(change: AbstractContextManager[None], names: list[str]) -> None:
    """In the block each name stands for something else, after its end for what it stood for."""
    before = [found(name) for name in names]
    try:
        with change:
            assert all(found(name) is not own for name, own in zip(names, before, strict=True))
            raise BrokenError
    except BrokenError:
        pass
    assert [found(name) for name in names] == before
