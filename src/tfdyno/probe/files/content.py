"""What files and folders hold, as one digest."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LEFT_OUT = frozenset({".git", "__pycache__", ".ipynb_checkpoints"})
"""Folders that no step's answer rests on."""


def content_of(
    path: Path, digest: Callable[[Path], str], *, without: frozenset[str] = frozenset()
) -> str:
    """Return the digest of a file, or of a folder: names and digests of all files in it, sorted.

    Links are followed. A folder that is met a second time, as by a link to a folder above, is the
    name under which it was met first.

    Args:
        path: That is there.
        digest: Of one file.
        without: Names of folders that are left out as well.

    Raises:
        UsageError: Something in it cannot be read.
    """
    try:
        if not path.is_dir():
            return digest(path)
        whole = hashlib.sha256()
        for name, first in sorted(_entries(path, LEFT_OUT | without)):
            content = f"/{first}" if first else digest(path / name)
            whole.update(f"{name}\0{content}\n".encode(errors="surrogateescape"))
        return whole.hexdigest()
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"cannot read {error.filename or path}", why=why) from None


def _entries(folder: Path, without: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Give each file with an empty text; each folder met before with its name then."""
    met = {_identity(str(folder)): "."}
    for place, folders, names in os.walk(folder, onerror=_raise, followlinks=True):
        inner = os.path.relpath(place, folder)
        new = []
        for one in sorted(set(folders) - without):  # sorted: the first one met is always the same
            name = os.path.normpath(os.path.join(inner, one))  # noqa: PTH118
            first = met.setdefault(_identity(os.path.join(place, one)), name)  # noqa: PTH118
            if first == name:
                new.append(one)
            else:
                yield name, first
        folders[:] = new
        for one in names:
            if os.path.isfile(os.path.join(place, one)):  # noqa: PTH113, PTH118  (many)
                yield os.path.normpath(os.path.join(inner, one)), ""  # noqa: PTH118


def _identity(path: str) -> tuple[int, int]:
    facts = os.stat(path)  # noqa: PTH116  (many)
    return facts.st_dev, facts.st_ino


def _raise(error: OSError) -> None:
    raise error
