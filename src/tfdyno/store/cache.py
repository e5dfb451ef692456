"""Results on disk, found by content: atomic, shared between processes, bounded."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import shutil
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import OSErrorsAs, UsageError
from tfdyno.core.base.lock import FileLock
from tfdyno.core.base.units import DAY_S

if TYPE_CHECKING:
    from collections.abc import Callable

MANIFEST = "manifest.json"
LIMIT_BYTES = 4 << 30
PROGRAMS = "compiled"
"""Folder of what other compilers keep, with entries and a limit of its own."""
ABANDONED_S = DAY_S  # a temporary folder as old as this has no living owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """A folder of entries; each entry is a folder of files that belong together."""

    root: Path
    limit_bytes: int = LIMIT_BYTES

    @property
    def programs(self) -> Path:
        """Folder of the programs that are kept between processes (``store.compiled``)."""
        return self.root / PROGRAMS

    def entries(self) -> list[Path]:
        """Return folders of all entries, whole or on their way."""
        return [
            one for one in self.root.glob("*/*") if one.is_dir() and one.parent != self.programs
        ]

    def remove(self, folder: Path) -> None:
        """Delete an entry; who reads it may have to make it again."""
        _remove(folder)

    def entry(
        self,
        kind: str,
        key: str,
        make: Callable[[Path], None],
        *,
        fresh: bool = False,
        current: Callable[[Path], bool] = lambda folder: True,
    ) -> Path:
        """Return the folder of ``key``; ``make`` makes a missing, damaged, old or ``fresh`` one.

        Two processes that want the same key wait for each other; the second finds the result.

        Args:
            kind: What is stored (``trace``, ``program``): one folder each.
            key: Hexadecimal digest of everything the result depends on.
            make: Fills the empty folder it is given.
            fresh: Make it again even if it is there.
            current: Whether a stored entry still holds; asked after its files were checked.

        Returns:
            A folder that is complete. Read it soon: a later call may remove old entries.

        Raises:
            UsageError: The cache's folder cannot be written to.
        """
        final = self.root / kind / key
        if not fresh and _usable(final, current):
            return final
        with self._lock(f"{kind}-{key}"):
            if not fresh and _usable(final, current, warn=True):
                return final
            self._fill(final, make)
        self._trim(keep=final)
        return final

    def kept(
        self, kind: str, key: str, *, current: Callable[[Path], bool] = lambda folder: True
    ) -> Path | None:
        """Return the folder of ``key`` as ``entry`` would; None: it would have to be made."""
        final = self.root / kind / key
        return final if _usable(final, current) else None

    def _lock(self, name: str) -> FileLock:
        folder = self.root / "locks"
        with OSErrorsAs(
            UsageError,
            f"the cache {self.root} cannot be used",
            remedy="name a folder that you may write to in TFDYNO_CACHE",
        ):
            folder.mkdir(parents=True, exist_ok=True)
            return FileLock(folder / name, patience_s=math.inf)

    def _fill(self, final: Path, make: Callable[[Path], None]) -> None:
        final.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(dir=final.parent, prefix=".part-"))
        try:
            make(part)
            _write_manifest(part)
            _remove(final)
            part.replace(final)
        except BaseException:
            _remove(part)
            raise

    def _trim(self, *, keep: Path) -> None:
        """Remove the entries used longest ago until the limit holds, and abandoned leftovers."""
        entries = []
        for folder in self.entries():
            with contextlib.suppress(OSError):
                age_s = time.time() - folder.stat().st_mtime
                if folder.name.startswith(".part-") and age_s > ABANDONED_S:
                    _remove(folder)
                elif not folder.name.startswith("."):
                    size = sum(file.stat().st_size for file in folder.iterdir())
                    entries.append((folder.stat().st_mtime, size, folder))
        total = sum(size for _, size, _ in entries)
        for _, size, folder in sorted(entries):
            if total > self.limit_bytes and folder != keep:
                _remove(folder)
                total -= size


def default_cache() -> Cache:
    """Return ``$TFDYNO_CACHE``, else ``$XDG_CACHE_HOME/tfdyno``, else ``~/.cache/tfdyno``."""
    chosen = os.environ.get("TFDYNO_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Cache(root=Path(chosen) if chosen else Path(base) / "tfdyno")


def sha256_of(path: Path) -> str:
    """Digest of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _usable(folder: Path, current: Callable[[Path], bool], *, warn: bool = False) -> bool:
    if not folder.exists():
        return False
    if not _intact(folder):
        if warn:
            warnings.warn(f"a damaged cache entry was dropped: {folder}", stacklevel=4)
        return False
    if not current(folder):
        return False
    with contextlib.suppress(OSError):
        os.utime(folder)
    return True


def _intact(folder: Path) -> bool:
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        return all(sha256_of(folder / name) == digest for name, digest in manifest.items())
    except (OSError, ValueError, AttributeError):
        return False


def _write_manifest(folder: Path) -> None:
    digests = {file.name: sha256_of(file) for file in sorted(folder.iterdir())}
    (folder / MANIFEST).write_text(json.dumps(digests))


def _remove(folder: Path) -> None:
    """Take an entry out of sight in one step, then delete it."""
    with contextlib.suppress(FileNotFoundError):
        hidden = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".part-"))
        with contextlib.suppress(FileNotFoundError):
            folder.replace(hidden)
        shutil.rmtree(hidden, ignore_errors=True)
