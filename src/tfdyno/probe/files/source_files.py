"""The files of a project that the migration check reads: found on disk, bounded, read as text."""

from __future__ import annotations

import io
import os
import stat
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.probe.base.near import no_such

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST_FILES = 10_000
MOST_FOLDERS = 50_000
LARGEST_BYTES = 1_000_000
"""A longer file is data or generated."""
LARGEST_NOTEBOOK_BYTES = 20_000_000
"""The largest notebook; most of a notebook are pictures."""
_SKIPPED = frozenset(
    ".git .hg .svn .tox .nox .venv venv .env env node_modules site-packages dist-packages "
    "__pycache__ .mypy_cache .ruff_cache .pytest_cache .ipynb_checkpoints .eggs build dist "
    ".cache .conda .pixi".split()
)
_SUFFIXES = (".py", ".pyw", ".ipynb", ".toml", ".cfg", ".sh", ".dockerfile", ".yml", ".yaml")
_NAMES = ("dockerfile", "containerfile", "pipfile")
_EVERY = 200
"""Files between two calls of the progress function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFiles:
    """What was found under the paths that the user gave."""

    paths: tuple[str, ...]
    """Relative to the folder that was given; sorted within it."""
    root: Path
    """Folder to which the paths are relative."""
    notes: tuple[str, ...] = ()
    """What was left out, and why."""


def find(path: Path, progress: Callable[[int], None] | None = None) -> SourceFiles:
    """Return the files under a folder that say what is run or installed, or the one file given.

    Links to folders are not followed. Environments, caches and ``.git`` are skipped.

    Args:
        path: A folder or a file.
        progress: Called now and then with the number of files found so far.

    Raises:
        UsageError: There is no such file or folder, or it is neither.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise no_such(path, what="file or folder") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", "") or str(error)
        raise UsageError(
            f"cannot look at {path}", why=why, remedy="give a file or folder"
        ) from None
    if stat.S_ISREG(mode):
        return SourceFiles(paths=(path.name,), root=path.parent)
    if not stat.S_ISDIR(mode):
        raise UsageError(f"{path} is neither a file nor a folder", remedy="give one of them")
    found: list[str] = []
    notes: list[str] = []
    for name in _walk(path, notes):
        found.append(name)
        if progress and len(found) % _EVERY == 0:
            progress(len(found))
        if len(found) >= MOST_FILES:
            notes.append(
                f"Only the first {MOST_FILES:,} files of {path} were looked at; "
                "give a folder further down for the others."
            )
            break
    if not found:
        notes.append(f"{path} holds no Python file, notebook or requirements file.")
    return SourceFiles(paths=tuple(found), root=path, notes=tuple(notes))


def read(root: Path, name: str) -> str:
    """Return the text of a file, in the encoding that it declares.

    Raises:
        ToolError: It cannot be read, is too large, or is not text; the message names the file.
    """
    path = root / name
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):
            raise ToolError(f"{name} was not read", why="it is not an ordinary file")
        is_notebook = path.suffix.lower() == ".ipynb"
        if facts.st_size > (LARGEST_NOTEBOOK_BYTES if is_notebook else LARGEST_BYTES):
            size = f"{facts.st_size / 1e6:.0f} MB"
            raise ToolError(f"{name} was not read", why=f"it has {size}")
        return decode(name, path.read_bytes())
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", "") or str(error)
        raise ToolError(f"{name} was not read", why=why) from None


def decode(name: str, content: bytes) -> str:
    """Return bytes of a source file as text.

    Raises:
        ToolError: They are not text.
    """
    if b"\0" in content and not content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ToolError(f"{name} was not read", why="it is binary")
    try:
        if content.startswith((b"\xff\xfe", b"\xfe\xff")):
            return content.decode("utf-16")
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = content.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        text = content.decode("utf-8", errors="replace")
        if text.count("�") > len(text) // 10:
            raise ToolError(f"{name} was not read", why="it is not text") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def is_source(name: str) -> bool:
    """Return whether a file of this name is worth reading."""
    lower = name.lower()
    if lower.startswith(_NAMES):
        return True
    if lower.endswith((".txt", ".in")):
        return any(word in lower for word in ("requirement", "constraint", "reqs", "deps"))
    return lower.endswith(_SUFFIXES)


def _walk(root: Path, notes: list[str]) -> Iterator[str]:
    """List the files, relative, folder by folder in the order of their names."""
    folders = [""]
    seen = 0
    while folders:
        folder = folders.pop()
        seen += 1
        if seen > MOST_FOLDERS:
            notes.append(f"Only the first {MOST_FOLDERS:,} folders of {root} were looked at.")
            return
        try:
            with os.scandir(root / folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            notes.append(f"{folder or root} was not looked into: {error.strerror}.")
            continue
        inner = []
        for entry in listed:
            name = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                if not _is_skipped(entry):
                    inner.append(name)
            elif is_source(entry.name) or Path(folder).name == "requirements":
                yield name
        folders += reversed(inner)


def _is_skipped(entry: os.DirEntry[str]) -> bool:
    """Return whether a folder is a cache or an environment, by its name or by what lies in it."""
    if entry.name in _SKIPPED or entry.name.endswith((".egg-info", ".dist-info")):
        return True
    folder = Path(entry.path)
    return (folder / "pyvenv.cfg").exists() or (folder / "conda-meta").is_dir()
