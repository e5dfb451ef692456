"""Compiled programs on disk: each file with its digest in its name, handed out by hard links.

A compiler never sees the kept files themselves but a folder of its own (``View``) with a link to
each that is whole. What it adds there is taken over after it was written. So nothing half-written,
damaged or removed can reach it: TensorFlow 2.21 ends an epoch silently at an entry that was cut
off, and fails the training at one that it cannot write.

    ROOT/KEY/about.json            what KEY stands for
    ROOT/KEY/programs/NAME@DIGEST  compiled programs
    ROOT/KEY/autotune/NAME@DIGEST  what XLA's autotuning found
    ROOT/KEY/times/NAME.json       how long first steps took
    ROOT/KEY/.view-…               links for a process that runs
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tfdyno.core.base.codec import to_json, write_atomic
from tfdyno.core.base.errors import TfdynoError
from tfdyno.core.base.lock import FileLock, is_held, lock_folder
from tfdyno.store.compiled.trust import is_open

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = ("programs", "autotune")
ABOUT, TIMES, VIEW = "about.json", "times", ".view-"
LIMIT_BYTES = 4 << 30
MARK = "@"
"""Between a name and its digest: neither TensorFlow nor JAX writes one."""
UNFINISHED = (".tmp", "-atime")
"""Ends of files that are no entries: half-written ones, and JAX's own clocks."""
_DIGEST = 32
_READ_ONLY = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOATIME", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One kept file."""

    key: str
    kind: str
    name: str
    digest: str
    path: Path
    size_bytes: int
    made_at_s: float
    """Seconds since 1970."""
    used_at_s: float


@dataclass(slots=True, kw_only=True)
class View:
    """Links to all that is kept under a key, for one process and what it adds."""

    store: ProgramStore
    key: str
    folder: Path
    places: Mapping[str, str]
    """Folder of each kind under ``folder``."""
    linked: dict[str, dict[str, Path]]
    """Kept files by kind and name."""
    dropped: int = 0
    """Kept files that were damaged, and are gone."""
    lock: FileLock
    made: dict[str, set[str]] = field(default_factory=dict)
    """Added and kept, by kind."""
    lost: set[str] = field(default_factory=set)
    """Added and not kept."""

    def place(self, kind: str) -> Path:
        """Return where the compiler looks for files of a kind."""
        return self.folder / self.places[kind]

    def collect(self) -> None:
        """Keep what was added since the last call; ``made`` names all of it.

        What cannot be kept is named by ``lost``: a full disk is no reason to end a training.
        """
        for kind in self.places:
            made = self.made.setdefault(kind, set())
            for file in files_in(self.place(kind)):
                known = self.linked[kind].keys() | made | self.lost
                if file.name in known or file.name.endswith(UNFINISHED):
                    continue
                try:
                    self.store.keep(self.key, kind, file)
                    made.add(file.name)
                except OSError:
                    self.lost.add(file.name)

    def touch(self, kind: str, names: frozenset[str]) -> None:
        """Note that kept files were used now: those used longest ago go first."""
        for name in names & self.linked[kind].keys():
            with contextlib.suppress(OSError):
                file = self.linked[kind][name]
                os.utime(file, ns=(time.time_ns(), file.stat().st_mtime_ns))

    @property
    def failed_writes(self) -> bool:
        """Whether something half-written lies there: its process could not write it."""
        places = map(self.place, self.places)
        return any(file.name.endswith(".tmp") for place in places for file in files_in(place))

    def close(self) -> None:
        """Take the links away; what is kept stays."""
        self.lock.close()
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramStore:
    """All kept files of a user, by key: software, card, driver and settings."""

    root: Path
    limit_bytes: int = LIMIT_BYTES

    def view(self, key: str, about: Mapping[str, str], places: Mapping[str, str]) -> View:
        """Make a folder with a link to each whole file under ``key``.

        Args:
            key: Name of a folder.
            about: What it stands for, in words.
            places: Folder of each kind in the view.

        Raises:
            OSError: The folder cannot be written, or is full.
            ToolError: Likewise.
        """
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        base = self.root / key
        base.mkdir(mode=0o700, exist_ok=True)
        if not (base / ABOUT).exists():
            write_atomic(base / ABOUT, to_json(dict(about)))
        folder = Path(tempfile.mkdtemp(dir=base, prefix=VIEW))
        try:
            view = View(store=self, key=key, folder=folder, places=places,
                        linked={kind: {} for kind in places}, lock=lock_folder(folder))  # fmt: skip
            for kind in places:
                view.place(kind).mkdir(parents=True, exist_ok=True)
                self._link(view, kind)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return view

    def _link(self, view: View, kind: str) -> None:
        for one in self._of_kind(view.key, kind):
            if not is_whole(one.path, one.digest):
                one.path.unlink(missing_ok=True)
                view.dropped += 1
            elif one.name not in view.linked[kind]:
                with contextlib.suppress(FileNotFoundError):  # another process made room
                    _link_or_copy(one.path, view.place(kind) / one.name)
                    view.linked[kind][one.name] = one.path

    def keep(self, key: str, kind: str, file: Path) -> None:
        """Take a finished file over under its name; the first of a name stays.

        Raises:
            OSError: It cannot be written.
        """
        folder = self.root / key / kind
        folder.mkdir(mode=0o700, exist_ok=True)
        if not any(folder.glob(f"{glob.escape(file.name)}{MARK}*")):
            file.chmod(0o600)
            with contextlib.suppress(FileExistsError):
                _link_or_copy(file, folder / f"{file.name}{MARK}{digest_of(file)}")

    def entries(self) -> Iterator[Entry]:
        """List all kept files."""
        for base in folders_in(self.root):
            for kind in KINDS:
                yield from self._of_kind(base.name, kind)

    def _of_kind(self, key: str, kind: str) -> Iterator[Entry]:
        for file in files_in(self.root / key / kind):
            name, mark, digest = file.name.rpartition(MARK)
            if not mark or digest.endswith(UNFINISHED):
                continue
            with contextlib.suppress(OSError):
                seen = file.stat()
                yield Entry(
                    key=key, kind=kind, name=name, digest=digest, path=file,
                    size_bytes=seen.st_size, made_at_s=seen.st_mtime,
                    used_at_s=max(seen.st_atime, seen.st_mtime),
                )  # fmt: skip

    def about(self, key: str) -> dict[str, str]:
        """Return what a key stands for; empty where its file is damaged."""
        try:
            return msgspec.json.decode((self.root / key / ABOUT).read_bytes(), type=dict[str, str])
        except (OSError, msgspec.DecodeError):
            return {}

    def trim(self) -> None:
        """Remove what was used longest ago until the limit holds, and views that nobody has."""
        found = sorted(self.entries(), key=lambda one: one.used_at_s)
        total = sum(one.size_bytes for one in found)
        for one in found:
            if total <= self.limit_bytes:
                break
            one.path.unlink(missing_ok=True)
            total -= one.size_bytes
        for base in folders_in(self.root):
            for view in base.glob(f"{VIEW}*"):
                if not is_held(view) and _is_old(view):
                    shutil.rmtree(view, ignore_errors=True)

    def remove_empty(self) -> None:
        """Delete the folders of keys without an entry, and what was noted of their first steps."""
        for base in folders_in(self.root):
            if not any(files_in(base / kind) for kind in KINDS) and not any(base.glob(f"{VIEW}*")):
                shutil.rmtree(base, ignore_errors=True)

    # How long it took

    def time_of(self, key: str, name: str) -> bytes:
        """Return what was noted of a first step; empty: nothing."""
        try:
            return (self.root / key / TIMES / f"{name}.json").read_bytes()
        except OSError:
            return b""

    def note_time(self, key: str, name: str, data: bytes) -> None:
        """Note it; left out where the folder cannot be written."""
        folder = self.root / key / TIMES
        with contextlib.suppress(OSError, TfdynoError):
            folder.mkdir(mode=0o700, exist_ok=True)
            write_atomic(folder / f"{name}.json", data)


def digest_of(file: Path) -> str:
    """Digest its content, without a trace in the time of its last use."""
    try:
        handle = os.open(file, _READ_ONLY)
    except PermissionError:  # O_NOATIME is for owners
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()[:_DIGEST]


def is_whole(file: Path, digest: str) -> bool:
    """Return whether it is the user's own alone, and is what it was."""
    try:
        seen = file.lstat()
        return seen.st_uid == os.geteuid() and not is_open(seen) and digest_of(file) == digest
    except OSError:
        return False


def files_in(folder: Path) -> list[Path]:
    """List a folder's regular files, sorted; none where it is not there."""
    try:
        return sorted(one for one in folder.iterdir() if one.is_file() and not one.is_symlink())
    except OSError:
        return []


def folders_in(folder: Path) -> list[Path]:
    """Return folders of a folder, sorted; none where it is not there."""
    try:
        return sorted(one for one in folder.iterdir() if one.is_dir() and not one.is_symlink())
    except OSError:
        return []


def _link_or_copy(source: Path, target: Path) -> None:
    """Give one file two names; make a copy where the file system has no links."""
    try:
        target.hardlink_to(source)
    except (FileExistsError, FileNotFoundError):
        raise
    except OSError:
        part = target.with_name(f"{target.name}.{os.getpid()}.tmp")
        try:
            shutil.copy2(source, part)
            part.replace(target)
        except OSError:
            part.unlink(missing_ok=True)
            raise


def _is_old(view: Path) -> bool:
    """Return whether it stands longer than between its making and its lock."""
    try:
        return time.time() - view.stat().st_mtime > 60.0
    except OSError:
        return False
