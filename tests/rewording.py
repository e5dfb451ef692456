"""Writes what sentences say now into the asserts that hold them: a change of words is one diff.

``GOLDEN=write scripts/test PATH -n 0`` changes the string literals of failing ``==`` asserts in the
tests' own sources, one of each test a run; read ``git diff``, and run again until nothing fails.
"""

from __future__ import annotations

import ast
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.codec import write_atomic

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
WIDTH = 96


def changed_texts(now: object, held: object) -> Iterator[tuple[str, str]]:
    """Yield the texts of ``held``, also inside of lists and tables, that are others in ``now``."""
    if isinstance(now, str) and isinstance(held, str):
        if now != held:
            yield held, now
    elif isinstance(now, dict) and isinstance(held, dict):
        for key in now.keys() & held.keys():
            yield from changed_texts(now[key], held[key])
    elif isinstance(now, list | tuple) and isinstance(held, list | tuple):
        for one, other in zip(now, held, strict=False):
            yield from changed_texts(one, other)


def asserting() -> tuple[Path, int]:
    """Return the test file and the line of the assert that has just failed."""
    frame = sys._getframe()
    while frame := frame.f_back:  # type: ignore[assignment]
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(HERE) and path.name not in {"conftest.py", Path(__file__).name}:
            return path, frame.f_lineno
    raise LookupError("no test asserts")


def reworded(source: str, line: int, held: str, now: str) -> str:
    """Return the source with ``now`` for the literal ``held`` of the assert, or of the file.

    It is left as it is where no literal says that, or several outside of the assert do.
    """
    tree = ast.parse(source)
    asserts = [n for n in ast.walk(tree) if isinstance(n, ast.Assert)]
    for place in (*(n for n in asserts if n.lineno <= line <= (n.end_lineno or 0)), tree):
        found = [n for n in ast.walk(place) if isinstance(n, ast.Constant) and n.value == held]
        if len(found) == 1:
            return _replaced(source, found[0], now)
    return source


def reword(now: object, held: object) -> None:
    """Write what differs into the file of the assert that has just failed."""
    path, line = asserting()
    source = path.read_text()
    for before, after in changed_texts(now, held):
        source = reworded(source, line, before, after)
    if source != path.read_text():
        write_atomic(path, source.encode())


def _replaced(source: str, literal: ast.Constant, text: str) -> str:
    lines = source.encode().splitlines(keepends=True)  # the tree counts bytes
    first, last = literal.lineno - 1, (literal.end_lineno or literal.lineno) - 1
    before = lines[first][: literal.col_offset]
    after = lines[last][literal.end_col_offset :]
    written = _literal(text, len(before) + len(after)).encode()
    return b"".join((*lines[:first], before + written + after, *lines[last + 1 :])).decode()


def _literal(text: str, beside: int) -> str:
    """Return a string literal, in parentheses and several pieces where a line would be too long."""
    if len(text) + beside <= WIDTH:
        return _quoted(text)
    pieces = textwrap.wrap(
        text, WIDTH - 16, drop_whitespace=False, expand_tabs=False, replace_whitespace=False
    )
    return "(" + "\n".join(_quoted(piece) for piece in pieces) + ")"


def _quoted(text: str) -> str:
    literal = repr(text)
    return literal if '"' in literal else f'"{literal[1:-1]}"'
