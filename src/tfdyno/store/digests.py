"""Digests of files that were read before: a large data set is not read again at every run."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tfdyno.core.base.codec import from_json, to_json, write_atomic
from tfdyno.core.base.errors import TfdynoError
from tfdyno.store.cache import sha256_of

FILE = "digests.json"
LEAST_BYTES = 1 << 20
"""Smaller files are read sooner than looked up in the folder; of one run they are remembered."""
SETTLED_S = 2.0
"""A file that changed later than this before it was read may change again within the same tick."""
SAVED_S = 30.0
"""Between two times that what was read is kept: who is stopped has to read no more again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What a file was like when it was read."""

    size_bytes: int
    modified_ns: int
    changed_ns: int
    """The time of change of its entry, which no program can set back."""
    inode: int
    sha256: str


@dataclass(slots=True, kw_only=True)
class Digests:
    """The digests that one folder remembers."""

    folder: Path
    reads: Callable[[str], object] = lambda _file: None
    """Called with the name of each large file that is read."""
    writes: bool = True
    """Whether the folder is to remember what is read."""
    _known: dict[str, Known] | None = field(default=None, init=False)
    _small: dict[str, Known] = field(default_factory=dict, init=False)
    _is_new: bool = field(default=False, init=False)
    _saved_s: float = field(default_factory=time.monotonic, init=False)

    def of(self, path: Path) -> str:
        """Return the sha256 of a file, from memory where nothing tells of a change.

        Raises:
            OSError: It cannot be read.
        """
        facts = path.stat()
        is_large = facts.st_size >= LEAST_BYTES
        known = self._all() if is_large else self._small
        name, now_ns = str(path.resolve()), time.time_ns()
        found = known.get(name)
        told = (facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino)
        if found and told == (
            found.size_bytes, found.modified_ns, found.changed_ns, found.inode
        ):  # fmt: skip
            return found.sha256
        if is_large:
            self.reads(path.name)
        sha256 = sha256_of(path)
        if now_ns - max(facts.st_mtime_ns, facts.st_ctime_ns) > SETTLED_S * 1e9:
            known[name] = Known(
                size_bytes=facts.st_size, modified_ns=facts.st_mtime_ns,
                changed_ns=facts.st_ctime_ns, inode=facts.st_ino, sha256=sha256,
            )  # fmt: skip
            self._is_new |= is_large
            if time.monotonic() - self._saved_s > SAVED_S:
                self.save()
        return sha256

    def save(self) -> None:
        """Remember what was read; a folder that cannot be written is no harm."""
        if self.writes and self._is_new and self._known is not None:
            kept = {name: one for name, one in self._known.items() if Path(name).exists()}
            with contextlib.suppress(OSError, TfdynoError):
                write_atomic(self.folder / FILE, to_json(kept))
                self._is_new = False
        self._saved_s = time.monotonic()

    def _all(self) -> dict[str, Known]:
        if self._known is None:
            self._known = {}
            path = self.folder / FILE
            with contextlib.suppress(OSError, TfdynoError):
                self._known = from_json(path.read_bytes(), dict[str, Known], where=str(path))
        return self._known
