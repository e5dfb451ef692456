"""What files and folders hold, as one digest."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from tfdyno.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LEFT_OUT = frozenset({".git", "__pycache__", ".ipynb_checkpoints"})
"""Folders that no step's answer rests on."""


def content_of(
    path: Path, digest: Callable[[Path], str], *, without: frozenset[str] = frozenset()
) -> str:
    """The digest of a file, or of a folder: names and digests of all files in it, sorted.

    Links are followed to files and not to folders.

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
        for name in sorted(_files(path, LEFT_OUT | without)):
            whole.update(f"{name}\0{digest(path / name)}\n".encode(errors="surrogateescape"))
        return whole.hexdigest()
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"cannot read {error.filename or path}", why=why) from None


def _files(folder: Path, without: frozenset[str]) -> Iterator[str]:
    for place, folders, names in os.walk(folder, onerror=_raise):
        folders[:] = [one for one in folders if one not in without]
        inner = os.path.relpath(place, folder)
        for name in names:
            if os.path.isfile(os.path.join(place, name)):  # noqa: PTH113, PTH118  (many)
                yield os.path.normpath(os.path.join(inner, name))  # noqa: PTH118


def _raise(error: OSError) -> None:
    raise error
