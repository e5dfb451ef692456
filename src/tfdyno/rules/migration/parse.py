"""From the text of a Python file or notebook to a module that rules can look at."""

from __future__ import annotations

import ast
import json
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.rules.migration.hits import Hit
from tfdyno.rules.migration.sites import Module
from tfdyno.rules.migration.walk import Own, no_other, walked

if TYPE_CHECKING:
    from collections.abc import Mapping

_PYTHON_2 = (
    "missing parentheses in call to",
    "multiple exception types must be parenthesized",
    "leading zeros in decimal integer literals",
    "invalid hexadecimal literal",
)
_MAGIC = ("%", "!", "?")
_SHELL_CELLS = ("%%bash", "%%sh", "%%script", "%%!", "%%system")
_SHELL_LINES = ("!", "%pip", "%conda", "%system", "%sx")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What became of a file."""

    module: Module | None = None
    tree: ast.Module | None = None
    hits: tuple[Hit, ...] = ()
    notes: tuple[str, ...] = ()
    commands: tuple[tuple[str, str], ...] = ()
    """Shell commands of a notebook: where they stand, and the text."""


def python(label: str, text: str, values: Mapping[str, str], own: Own = no_other) -> Parsed:
    """Return a Python file; ``own`` knows what it imports from other files of its project."""
    tree = syntax_tree(text)
    if isinstance(tree, str | SyntaxError):
        return _unread(label, text, tree)
    return _parsed(label, text.splitlines(), tree, values, (), own)


def notebook(label: str, text: str, values: Mapping[str, str], own: Own = no_other) -> Parsed:
    """Return the code cells of a notebook, put one after the other."""
    try:
        cells = _cells(json.loads(text))
    except (ValueError, RecursionError) as error:
        return Parsed(notes=(f"{label} was not read: it is not a notebook ({error}).",))
    body: list[ast.stmt] = []
    lines: list[str] = []
    places: list[tuple[int, int]] = []
    notes: list[str] = []
    commands: list[tuple[str, str]] = []
    for number, source in cells:
        code, shell = _without_magic(source)
        commands += [(f"{label}, cell {number}, line {at}", line) for at, line in shell]
        tree = syntax_tree(code)
        if isinstance(tree, str | SyntaxError):
            notes += _unread(f"{label}, cell {number}", source, tree).notes
            continue
        body += ast.increment_lineno(tree, len(lines)).body
        given = source.splitlines() or [""]
        lines += given
        places += [(number, at) for at in range(1, len(given) + 1)]
    whole = ast.Module(body=body, type_ignores=[])
    found = _parsed(label, lines, whole, values, tuple(places), own)
    return Parsed(
        module=found.module, tree=whole, notes=(*notes, *found.notes), commands=tuple(commands)
    )


def syntax_tree(text: str) -> ast.Module | SyntaxError | str:
    """Return the syntax tree, or why there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        return error
    except (RecursionError, MemoryError):
        return "it is nested too deeply"
    except ValueError as error:
        return str(error)


def _parsed(
    label: str,
    lines: list[str],
    tree: ast.Module,
    values: Mapping[str, str],
    places: tuple[tuple[int, int], ...],
    own: Own,
) -> Parsed:
    try:
        found, _ = walked(tree, own)
    except RecursionError:
        return Parsed(notes=(f"{label} was not read: it is nested too deeply.",))
    module = Module(label=label, lines=tuple(lines), sites=found, values=values, cells=places)
    return Parsed(module=module, tree=tree)


def _unread(label: str, text: str, error: SyntaxError | str) -> Parsed:
    if isinstance(error, str):
        return Parsed(notes=(f"{label} was not read: {error}.",))
    line, reason = error.lineno or 1, (error.msg or "invalid syntax").rstrip(".")
    if reason.lower().startswith(_PYTHON_2):
        lines = text.splitlines()
        code = lines[line - 1].strip() if 0 < line <= len(lines) else ""
        hit = Hit(cause="python2", source=f"{label}:{line}", text=code, verdict="likely")
        note = f"{label} was not read: line {line} is Python 2."
        return Parsed(hits=(hit,), notes=(note,))
    return Parsed(notes=(f"{label} was not read: line {line}: {reason}.",))


def _cells(book: object) -> list[tuple[int, str]]:
    """Return code cells with their number in the notebook, from 1.

    Raises:
        ValueError: It has no cells.
    """
    if not isinstance(book, dict):
        raise ValueError("no cells")
    cells = book.get("cells")
    if not isinstance(cells, list):
        sheets = book.get("worksheets")
        first = sheets[0] if isinstance(sheets, list) and sheets else {}
        cells = first.get("cells") if isinstance(first, dict) else None
    if not isinstance(cells, list):
        raise ValueError("no cells")
    found = []
    for number, cell in enumerate(cells, 1):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            source = cell.get("source", cell.get("input", ""))
            text = "".join(map(str, source)) if isinstance(source, list) else str(source)
            found.append((number, text))
    return found


def _without_magic(source: str) -> tuple[str, list[tuple[int, str]]]:
    """Return a cell as plain Python of as many lines, and its lines for a shell."""
    lines = source.splitlines()
    first = next((line.strip() for line in lines if line.strip()), "")
    if first.startswith("%%") and not first.startswith(("%%time", "%%capture", "%%prun")):
        is_shell = first.startswith(_SHELL_CELLS)
        return "", list(enumerate(lines, 1))[1:] if is_shell else []
    code, shell = [], []
    for number, line in enumerate(lines, 1):
        bare = line.lstrip()
        if bare.startswith(_MAGIC) or bare.rstrip().endswith("?"):
            code.append(f"{line[: len(line) - len(bare)]}pass")
            if bare.startswith(_SHELL_LINES):
                shell.append((number, bare.lstrip("!%")))
        else:
            code.append(line)
    return "\n".join(code), shell
