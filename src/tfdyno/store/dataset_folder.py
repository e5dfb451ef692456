"""The folder of a converted data set: what is finished in it, and what it was begun with.

While shards are written, a journal holds one line for the source and the settings and one for each
finished shard. At the end the manifest takes its place.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import fields
from typing import TYPE_CHECKING

from tfdyno.core.base.codec import from_json, to_json, write_atomic
from tfdyno.core.base.errors import OSErrorsAs, TfdynoError, ToolError, UsageError
from tfdyno.core.base.lock import lock_folder
from tfdyno.core.deploy.dataset import (
    FORMAT_VERSION,
    JOURNAL,
    LOCK,
    MANIFEST,
    PART,
    READER,
    Begun,
    Dataset,
    Skipped,
    Written,
)
from tfdyno.store.cache import sha256_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tfdyno.core.deploy.dataset import Shard

_OPTIONS = {
    "shards": "--shards or --shard-bytes",
    "compression": "--compression",
    "shuffle_seed": "--shuffle-seed",
    "image_size": "--image-size",
    "label": "--label",
    "delimiter": "--delimiter",
    "kind": "SOURCE",
}


class DatasetFolder:
    """One folder, and the one command that writes into it."""

    def __init__(self, path: Path) -> None:
        """Take the folder; nothing is made yet."""
        self.path = path

    def check(self, source: Path) -> None:
        """Refuse a folder that a data set must not be written into; raises ``UsageError``."""
        if not _is_text(self.path):
            shown = os.fsencode(self.path).decode(errors="backslashreplace")
            why = "TensorFlow opens no such files"
            raise UsageError(f"the path {shown} is no UTF-8 text", why=why,
                             remedy="name another folder")  # fmt: skip
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"cannot write to {self.path}", why="it is a file")
        inside, outside = self.path.resolve(), source.resolve()
        if inside.is_relative_to(outside):
            raise UsageError(
                f"{self.path} is inside {source}",
                why="what is written would become a part of the source",
                remedy="name a folder beside it",
            )
        ours = (self.path / MANIFEST).exists() or (self.path / JOURNAL).exists()
        others = [one.name for one in self._entries() if not _is_leftover(one.name)]
        if others and not ours:
            raise UsageError(
                f"{self.path} is not empty and holds no data set of tfdyno",
                why=f"there is {min(others)} in it",
                remedy="name a new folder",
            )

    def read(self) -> Dataset:
        """Return the manifest of a finished data set.

        Raises:
            UsageError: There is none, it is damaged, or of another version of tfdyno.
        """
        path = self.path / MANIFEST
        try:
            data = path.read_bytes()
        except OSError as error:
            begun = (self.path / JOURNAL).exists()
            why = f"there is no {MANIFEST} in it" if not begun else "it is not finished"
            why = why if isinstance(error, FileNotFoundError) else error.strerror or str(error)
            remedy = "give the command that began it again" if begun else ""
            raise UsageError(f"{self.path} is no converted data set", why=why,
                             remedy=remedy) from None  # fmt: skip
        found = from_json(data, Dataset, where=str(path))
        if found.format_version != FORMAT_VERSION:
            raise _other_version(path, found.format_version)
        return found

    def begun(self) -> tuple[Begun, tuple[Written, ...]] | None:
        """Return what was begun or finished here, with its finished shards; None: nothing.

        Raises:
            UsageError: The manifest or the first line of the journal is damaged.
        """
        path = self.path / JOURNAL
        if path.exists():
            lines = path.read_bytes().split(b"\n")
            begun = from_json(lines[0], Begun, where=str(path))
            if begun.format_version != FORMAT_VERSION:
                raise _other_version(path, begun.format_version)
            return begun, tuple(_written(lines[1:], path))
        if not (self.path / MANIFEST).exists():
            return None
        done = self.read()
        skipped: dict[str, tuple[Skipped, ...]] = {}
        for one in done.skipped:
            skipped[one.shard] = (*skipped.get(one.shard, ()), one)
        return (
            Begun(source_sha256=done.source.sha256, settings=done.settings),
            tuple(Written(shard=one, skipped=skipped.get(one.file, ())) for one in done.shards),
        )

    def check_same(self, begun: Begun, wanted: Begun, source: Path) -> None:
        """Refuse to go on with another source or other settings; raises ``UsageError``."""
        remedy = "name a new folder for it, or remove this one"
        for field in fields(wanted.settings):
            old, new = (getattr(one.settings, field.name) for one in (begun, wanted))
            if old != new:
                said = f"with {_OPTIONS[field.name]} {_shown(old)}, now it is {_shown(new)}"
                raise UsageError(f"{self.path} was begun {said}", remedy=remedy)
        if begun.source_sha256 != wanted.source_sha256:
            raise UsageError(f"{source} has changed since {self.path} was begun", remedy=remedy)

    def sound(
        self, written: Sequence[Written], heard: Callable[[int], None]
    ) -> tuple[Written, ...]:
        """Return those finished shards that still are what they were.

        Args:
            written: What the journal or the manifest says.
            heard: Called after each with how many were looked at.
        """
        found = []
        for place, one in enumerate(written, start=1):
            if not fault(self.path, one.shard):
                found.append(one)
            heard(place)
        return tuple(found)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Make the folder, and keep other commands out until the block ends, or this process.

        A folder that was made here and is still empty at the end is removed.

        Raises:
            UsageError: It cannot be made, or another command writes into it.
            ToolError: It cannot be written.
        """
        is_new = not self.path.exists()
        with OSErrorsAs(UsageError, f"cannot make the folder {self.path}"):
            self.path.mkdir(parents=True, exist_ok=True)
        with lock_folder(self.path, LOCK):
            try:
                yield
            finally:
                self._remove(LOCK)
                if is_new:
                    with contextlib.suppress(OSError):  # it is not empty
                        self.path.rmdir()

    def start(self, begun: Begun, written: Sequence[Written]) -> Path:
        """Write the journal anew and remove what is left of unfinished shards; returns its path.

        Raises:
            UsageError: The folder cannot be written.
            ToolError: There is no room.
        """
        path = self.path / JOURNAL
        _write(path, b"".join(to_json(one) + b"\n" for one in (begun, *written)))
        self.remove_parts()
        self._remove(MANIFEST)  # it is true again when all shards are
        return path

    def finished(self) -> tuple[Written, ...]:
        """Return the journal's shards by name."""
        found = self.begun()
        done = {one.shard.file: one for one in (found[1] if found else ())}
        return tuple(done[name] for name in sorted(done))

    def finish(self, dataset: Dataset, reader: str) -> None:
        """Write manifest and reader, then remove the journal; raises as ``start`` does."""
        _write(self.path / READER, reader.encode())
        _write(self.path / MANIFEST, to_json(dataset, indent=2) + b"\n")
        self._remove(JOURNAL)

    def remove_parts(self) -> None:
        """Remove what is left of shards, and of files of ours, that were not finished."""
        for one in self._entries():
            if one.name.endswith(PART) or _is_temporary(one.name):
                self._remove(one.name)

    def _entries(self) -> list[Path]:
        try:
            return list(self.path.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise UsageError(f"cannot read {self.path}", why=error.strerror or str(error)) from None

    def _remove(self, name: str) -> None:
        with contextlib.suppress(OSError):
            (self.path / name).unlink()


def fault(folder: Path, shard: Shard) -> str:
    """Return what is wrong with a shard; empty: its bytes are those that were written."""
    path = folder / shard.file
    try:
        size_bytes = path.stat().st_size
        if size_bytes != shard.size_bytes:
            return f"has {size_bytes:,} bytes instead of {shard.size_bytes:,}"
        found = sha256_of(path)
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    return "" if found == shard.sha256 else "has other bytes than were written (sha256)"


def _write(path: Path, data: bytes) -> None:
    """Write a file and see to it that it is on the disk, by its own name."""
    try:
        write_atomic(path, data)
        for one in (path, path.parent):
            handle = os.open(one, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
    except (OSError, ToolError) as error:
        raise ToolError(
            f"cannot write {path}",
            why=error.why if isinstance(error, ToolError) else error.strerror or str(error),
            remedy="free some space, then give the same command again",
        ) from None


def _is_text(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_leftover(name: str) -> bool:
    return name == LOCK or _is_temporary(name)


def _is_temporary(name: str) -> bool:
    """Return whether it is a file of ours that a kill kept from its name."""
    return name.startswith(tuple(f".{one}." for one in (MANIFEST, READER, JOURNAL)))


def _written(lines: Sequence[bytes], path: Path) -> Iterator[Written]:
    """Read the lines of finished shards; the last one may be cut off by a kill."""
    for line in filter(None, lines):
        try:
            yield from_json(line, Written, where=str(path))
        except TfdynoError:
            return


def _other_version(path: Path, version: int) -> UsageError:
    return UsageError(
        f"{path} is of format {version}",
        why=f"this tfdyno knows format {FORMAT_VERSION}",
        remedy="convert into a new folder",
    )


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    return "none" if value in ("", None) else str(value)
