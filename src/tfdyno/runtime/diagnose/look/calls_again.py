"""Whether a script will call a function again, by where the call that is running stands in it."""

from __future__ import annotations

import ast
import functools
import linecache
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.process.own_lines import own_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_LOOPS = (
    ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip
_OURS = str(Path(__file__).parents[3])
"""The folder of this package."""


def calls_again(name: str) -> bool:
    """Return whether the running call of ``name`` stands in a loop, or before another one of it.

    So does the call of the function that it stands in, and of the function around that: a search
    may be a loop of the user's own or of a library.
    """
    names = {name}
    for frame in _frames():
        if _is_in_loop(frame) or (_is_own(frame) and _is_called_below(frame, names)):
            return True
        names.add(frame.f_code.co_name)
    return False


def _frames() -> Iterator[FrameType]:
    """Walk from the innermost one outwards to the script's module; tfdyno's own left out."""
    frame: FrameType | None = sys._getframe(1)
    while frame:
        file = frame.f_code.co_filename
        if not file.startswith(_OURS):
            yield frame
            if frame.f_code.co_name == "<module>":
                return
        frame = frame.f_back


def _is_own(frame: FrameType) -> bool:
    return own_file(frame.f_code.co_filename)


def _is_in_loop(frame: FrameType) -> bool:
    """Treat a loop around a function's call as the caller's, seen in the caller's frame."""
    first, line = frame.f_code.co_firstlineno, frame.f_lineno
    return any(
        first <= node.lineno <= line <= (node.end_lineno or line)
        for node in _nodes(frame.f_code.co_filename)
        if isinstance(node, _LOOPS)
    )


def _is_called_below(frame: FrameType, names: set[str]) -> bool:
    return any(
        node.lineno > frame.f_lineno and _called(node) in names
        for node in _nodes(frame.f_code.co_filename)
        if isinstance(node, ast.Call)
    )


def _called(node: ast.Call) -> str:
    function = node.func
    return getattr(function, "attr", "") or getattr(function, "id", "")


@functools.cache
def _nodes(file: str) -> tuple[ast.AST, ...]:
    try:
        return tuple(ast.walk(ast.parse("".join(linecache.getlines(file)))))
    except (SyntaxError, ValueError):
        return ()
