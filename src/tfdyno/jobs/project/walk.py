"""The files below a folder that may hold results or runs."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes
from tfdyno.core.project.project import FOLDER
from tfdyno.store.project_history import ProjectHistory
from tfdyno.store.results import FILE as BENCHES
from tfdyno.store.tuning_study import FILE as STUDY

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_BYTES = 16 * 2**20
"""Of a document that is read."""
MOST_FOLDERS = 5000
MOST_DEPTH = 4
_OTHERS = frozenset(("node_modules", "__pycache__", "site-packages", "venv", FOLDER))
STORES = (BENCHES, STUDY)


@dataclass(slots=True, kw_only=True)
class Walk:
    """A walk through a folder, which counts what it leaves out."""

    folder: Path
    only: tuple[str, ...] = ()
    """Names of the files that are wanted; empty: all that may hold results."""
    large: int = 0
    deep: int = 0
    is_cut: bool = False

    def files(self) -> Iterator[Path]:
        """Yield what may hold results, in order; links are not followed."""
        for number, (root, names, files) in enumerate(os.walk(self.folder), 1):
            if number > MOST_FOLDERS:
                self.is_cut = True
                return
            here = Path(root)
            is_project = self._is_wanted(FOLDER) and FOLDER in names
            if is_project and ProjectHistory(folder=here / FOLDER).path.exists():
                yield here / FOLDER
            names[:] = self._below(here, names)
            for name in filter(self._is_wanted, sorted(files)):
                if self._is_read(here / name):
                    yield here / name

    def left_out(self) -> Iterator[str]:
        """Say what was not read, after the walk."""
        if self.large:
            yield f".json files above {format_bytes(MOST_BYTES)} not read: {self.large:,}"
        if self.deep:
            yield (
                f"folders more than {MOST_DEPTH} levels down not read: {self.deep:,} "
                "(see them with --folder)"
            )
        if self.is_cut:
            yield f"only the first {MOST_FOLDERS:,} folders read (name one of them with --folder)"

    def _is_wanted(self, name: str) -> bool:
        if self.only:
            return name in self.only
        return name.endswith(".json") or name in (*STORES, FOLDER)

    def _below(self, here: Path, names: list[str]) -> list[str]:
        found = sorted(name for name in names if not name.startswith(".") and name not in _OTHERS)
        if len(here.relative_to(self.folder).parts) < MOST_DEPTH:
            return found
        self.deep += len(found)
        return []

    def _is_read(self, path: Path) -> bool:
        try:
            state = path.lstat()
        except OSError:  # gone meanwhile
            return False
        is_large = path.name not in STORES and state.st_size > MOST_BYTES
        self.large += is_large
        return stat.S_ISREG(state.st_mode) and not is_large


def id_of(path: Path, entry: str) -> str:
    """Return a name of one in a file that an address can hold, whatever is in the path."""
    return hashlib.sha256(os.fsencode(path) + b"\0" + entry.encode()).hexdigest()[:16]


def readable(path: Path) -> str:
    """Write a path with what is no UTF-8 in it replaced: as text it could not be sent."""
    return os.fsencode(path).decode(errors="replace")
