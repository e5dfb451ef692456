"""What a kept trace depends on: noted when it is made, compared when it is asked for again.

Modules of the user's count by their code, without comments, blank lines and line breaks, as long as
none of them looks at its own text or line numbers, and none is named in what the trace says. All
else counts by its bytes: what cannot be judged is traced again.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import os
import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.store.cache import sha256_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MOST_READ_BYTES = 16 << 20
"""So much of the files that were read counts by content, what is beyond by size and time."""
SELF_AWARE = frozenset(
    "inspect linecache tokenize lineno f_lineno tb_lineno co_firstlineno co_lines co_positions "
    "co_lnotab co_linetable __code__ getsource get_source to_code marshal dill cloudpickle".split()
)
"""Names by which code reaches its own text, its line numbers, or a digest with these in it."""
_LATE = "changed while it was traced"
"""What no file is later: the trace is made again."""
_BY_TIME = " ns"
"""Ends what tells of a file that counts by size and time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A file of the user's code as it was."""

    sha256: str
    code: str = ""
    """Digest of its code alone; empty: its bytes count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """All that makes a trace stale when it changes."""

    modules: dict[str, Module] = field(default_factory=dict)
    read: dict[str, str] = field(default_factory=dict)
    """Files and folders that the code read, with what tells of a change."""
    variables: dict[str, str] = field(default_factory=dict)
    """Environment variables that it asked for, with a digest of their value; empty: not set."""


def dependencies(
    files: Mapping[str, str],
    read: Iterable[str] = (),
    variables: Iterable[str] = (),
    *,
    names_lines: bool = False,
    began_ns: int,
) -> Dependencies:
    """Note what a trace depends on, as it is now.

    Args:
        files: Modules of the user's and records of packages, with the SHA-256 that they had.
        read: Other files and folders that were read.
        variables: Environment variables that were asked for.
        names_lines: Whether the trace tells lines of the code: then comments count.
        began_ns: When the trace began, since 1970: a file that was read and changed later was read
            as it was before, perhaps, and makes the trace stale at once.
    """
    codes = {path: _code_in(Path(path), one) for path, one in files.items() if path.endswith(".py")}
    if names_lines or not all(codes.values()):
        codes = {}
    return Dependencies(
        modules={path: Module(sha256=one, code=codes.get(path, "")) for path, one in files.items()},
        read=dict(_facts_of(read, began_ns)),
        variables={name: _value_of(name) for name in variables},
    )


def hold(known: Dependencies) -> bool:
    """Return whether everything is as it was noted."""
    try:
        return (
            all(_value_of(name) == value for name, value in known.variables.items())
            and all(_is_same(Path(path), module) for path, module in known.modules.items())
            and all(
                _fact_of(Path(path), by_time=fact.endswith(_BY_TIME)) == fact
                for path, fact in known.read.items()
            )
        )
    except OSError:
        return False


def code_of(text: bytes) -> str:
    """Digest of a module's code: its syntax tree without positions.

    Empty: it is not this Python's, or reaches for its own text, so that its bytes have to count.
    Where a lambda stands in its statement is kept, for TensorFlow's AutoGraph finds it by line.
    """
    try:
        tree = ast.parse(text)
        names = set(_names_in(tree))
        if names & SELF_AWARE:
            return ""
        parts = (sys.version_info[:2], ast.dump(tree), list(_lambda_lines(tree, 0, 0)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _code_in(path: Path, sha256: str) -> str:
    """Return the digest of a module's code, empty where its bytes are others by now."""
    try:
        text = path.read_bytes()
    except OSError:
        return ""
    return code_of(text) if hashlib.sha256(text).hexdigest() == sha256 else ""


def _is_same(path: Path, module: Module) -> bool:
    if sha256_of(path) == module.sha256:
        return True
    return bool(module.code) and code_of(path.read_bytes()) == module.code


def _names_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.ImportFrom):
            yield from (node.module or "").split(".")
        elif isinstance(node, ast.alias):
            yield from node.name.split(".")


def _lambda_lines(node: ast.AST, first: int, last: int) -> Iterator[tuple[int, int, int]]:
    """Yield the lines of each lambda within its statement, and how many that has."""
    if isinstance(node, ast.stmt):
        first, last = node.lineno, node.end_lineno or node.lineno
    elif isinstance(node, ast.Lambda):
        yield node.lineno - first, (node.end_lineno or node.lineno) - first, last - first
    for child in ast.iter_child_nodes(node):
        yield from _lambda_lines(child, first, last)


def _facts_of(read: Iterable[str], began_ns: int) -> Iterator[tuple[str, str]]:
    left_bytes = MOST_READ_BYTES
    for path in read:
        size, is_late = 0, False
        with contextlib.suppress(OSError):
            about = Path(path).stat()
            size = about.st_size
            is_late = stat.S_ISREG(about.st_mode) and about.st_mtime_ns >= began_ns
        yield path, _LATE if is_late else _fact_of(Path(path), by_time=size > left_bytes)
        left_bytes -= min(size, left_bytes)


def _fact_of(path: Path, *, by_time: bool) -> str:
    """Return what tells of a change: names in a folder, the bytes of a file, or its size and time.

    Empty where it cannot be read.
    """
    try:
        about = path.stat()
        if stat.S_ISDIR(about.st_mode):
            names = sorted(one.name for one in path.iterdir() if one.name != "__pycache__")
            return hashlib.sha256("\0".join(names).encode("utf-8", "surrogateescape")).hexdigest()
        if by_time or not stat.S_ISREG(about.st_mode):
            return f"{about.st_size} bytes, {about.st_mtime_ns}{_BY_TIME}"
        return sha256_of(path)
    except OSError:
        return ""


def _value_of(name: str) -> str:
    value = os.environ.get(name)
    return "" if value is None else hashlib.sha256(os.fsencode(value)).hexdigest()
