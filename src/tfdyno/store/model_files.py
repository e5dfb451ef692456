"""The files of the model store: copied, found by content, never changed.

``objects`` has every content once; ``artefacts`` has a folder per artefact whose files are hard
links to them, so that a SavedModel is a folder as TensorFlow wants it; ``tmp`` has what is being
copied. A folder of ``artefacts`` appears in one step, complete.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.codec import to_json
from tfdyno.core.base.errors import OSErrorsAs, ToolError, UsageError
from tfdyno.core.base.lock import FileLock
from tfdyno.core.deploy.model_version import Artefact, StoredFile
from tfdyno.store.cache import sha256_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tfdyno.core.deploy.model_version import ArtefactKind

OBJECTS, ARTEFACTS, TEMPORARY, LOCK = "objects", "artefacts", "tmp", ".lock"
PATIENCE_S = 60.0
CHUNK_BYTES = 1 << 20
_READ_ONLY = 0o444


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFiles:
    """The folders of one store."""

    folder: Path

    def path(self, artefact: Artefact) -> Path:
        """Return where the artefact lies."""
        return self._home(artefact.digest) / artefact.name

    def file(self, artefact: Artefact, one: StoredFile) -> Path:
        """Return where one of its files lies."""
        return self.path(artefact) / one.path if one.path else self.path(artefact)

    def shared(self) -> FileLock:
        """Let nothing be removed until the block ends: an artefact may wait for its row."""
        return self._lock(shared=True)

    def alone(self) -> FileLock:
        """Let nothing be added until the block ends.

        Raises:
            ToolError: Somebody adds all the while.
        """
        return self._lock(shared=False)

    def put(self, source: Path, kind: ArtefactKind, *, without: str = "") -> Artefact:
        """Copy a file or a folder but its file ``without``; call it within ``shared``.

        Raises:
            UsageError: The source cannot be read, changes meanwhile, or has links in it.
            ToolError: There is no room.
        """
        name = f"model{source.suffix.lower()}" if source.is_file() else "model"
        part = self._part()
        try:
            with _told_of(self.folder):
                artefact = _copied(_sources(source, without), part / name, kind, name)
                self._link_objects(part, artefact)
                self._take_in(part, artefact)
        finally:
            shutil.rmtree(part, ignore_errors=True)
        return artefact

    def faults(self, artefact: Artefact) -> tuple[str, ...]:
        """Return what is wrong with its files, each by its path; empty: they are what was added."""
        return tuple(
            f"{self.file(artefact, one)} {said}"
            for one in artefact.files
            if (said := _fault(self.file(artefact, one), one))
        )

    def remove(self, kept: Iterable[str], *, dry: bool = False) -> int:
        """Remove every artefact but those with these digests; call it within ``alone``.

        What a kill left goes too.

        Args:
            kept: Digests.
            dry: Only count.

        Returns:
            Bytes that the disk gets back.
        """
        names = set(kept)
        doomed = [one for one in self._entries(ARTEFACTS) if one.name not in names]
        doomed += self._entries(TEMPORARY)
        living = {_inode(f) for one in self._entries(ARTEFACTS) if one.name in names
                  for f in _files(one)}  # fmt: skip
        objects = [f for one in self._entries(OBJECTS) for f in _files(one)]
        freed = {_inode(f): f.stat().st_size for f in _all_files((*doomed, *objects))
                 if _inode(f) not in living}  # fmt: skip
        if not dry:
            for one in doomed:
                self._drop(one)
            for file in objects:
                if _inode(file) not in living:
                    file.unlink(missing_ok=True)
        return sum(freed.values())

    def disk_bytes(self) -> int:
        """Sum the bytes of all artefacts, equal files counted once."""
        sizes = {_inode(f): f.stat().st_size for f in _all_files(self._entries(ARTEFACTS))}
        return sum(sizes.values())

    def _home(self, digest: str) -> Path:
        return self.folder / ARTEFACTS / digest

    def _entries(self, name: str) -> list[Path]:
        with contextlib.suppress(FileNotFoundError):
            return list((self.folder / name).iterdir())
        return []

    def _part(self) -> Path:
        try:
            for name in (OBJECTS, ARTEFACTS, TEMPORARY):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
            return Path(tempfile.mkdtemp(dir=self.folder / TEMPORARY))
        except OSError as error:
            raise _unwritable(self.folder, error) from None

    def _link_objects(self, part: Path, artefact: Artefact) -> None:
        """Let each file of the copy be the object of that content, where there are hard links."""
        for one in artefact.files:
            copy = part / artefact.name / one.path if one.path else part / artefact.name
            home = self.folder / OBJECTS / one.sha256[:2] / one.sha256
            home.parent.mkdir(exist_ok=True)
            try:
                _link(copy, home, one)
            except OSError as error:
                if error.errno not in {errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS}:
                    raise

    def _take_in(self, part: Path, artefact: Artefact) -> None:
        """Give the copy its place, or leave it where an intact one is there."""
        home = self._home(artefact.digest)
        if home.exists():
            if not self.faults(artefact):
                return
            self._drop(home)  # damaged: the copy heals it
        _sync_tree(part)
        with contextlib.suppress(FileExistsError):
            try:
                part.rename(home)
            except OSError as error:  # another process was faster with the same files
                if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                    raise
        _sync(home.parent)

    def _drop(self, path: Path) -> None:
        """Take it out of sight in one step, then delete it."""
        hidden = Path(tempfile.mkdtemp(dir=self.folder / TEMPORARY))
        with contextlib.suppress(FileNotFoundError):
            path.rename(hidden / "gone")
        shutil.rmtree(hidden, ignore_errors=True)

    def _lock(self, *, shared: bool) -> FileLock:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            return FileLock(self.folder / LOCK, shared=shared, patience_s=PATIENCE_S)
        except TimeoutError:
            why = f"another command has used it for {PATIENCE_S:.0f} s"
            raise ToolError(f"{self.folder} is in use", why=why, remedy="try again") from None
        except OSError as error:
            raise _unwritable(self.folder, error) from None


def copy_contents(source: Path, target: Path) -> None:
    """Copy contents alone: the files of the store may not be written to, a copy may."""
    if source.is_file():
        shutil.copyfile(source, target)
        return
    target.mkdir()
    for one in sorted(source.iterdir()):
        copy_contents(one, target / one.name)


def _copied(
    sources: Iterable[tuple[Path, str]], target: Path, kind: ArtefactKind, name: str
) -> Artefact:
    """Copy and hash the artefact in one go."""
    files = []
    for path, said in sources:
        place = target / said if said else target
        place.parent.mkdir(parents=True, exist_ok=True)
        files.append(_copy(path, place, said))
    plain = [(one.path, one.sha256) for one in files]
    digest = hashlib.sha256(to_json([name, plain])).hexdigest()
    return Artefact(kind=kind, name=name, digest=digest, files=tuple(files))


def _sources(source: Path, without: str) -> list[tuple[Path, str]]:
    """Return files with their paths in the artefact, in order; empty folders are left out."""
    if source.is_file():
        return [(source, "")]
    found = sorted(one for one in source.rglob("*") if one != source / without)
    for one in found:
        if one.is_symlink():
            raise UsageError(f"{one} is a link", why="a version holds the files themselves",
                             remedy="put the file in its place")  # fmt: skip
        if not (one.is_dir() or one.is_file()):
            raise UsageError(f"{one} is neither a file nor a folder")
    return [(one, one.relative_to(source).as_posix()) for one in found if one.is_file()]


def _copy(source: Path, target: Path, said: str) -> StoredFile:
    digest, size_bytes = hashlib.sha256(), 0
    with OSErrorsAs(UsageError, f"cannot read {source}"):
        reader = source.open("rb")
    with reader, target.open("xb") as writer:
        while chunk := reader.read(CHUNK_BYTES):
            digest.update(chunk)
            writer.write(chunk)
            size_bytes += len(chunk)
        writer.flush()
        os.fsync(writer.fileno())
        os.fchmod(writer.fileno(), _READ_ONLY)
    return StoredFile(path=said, size_bytes=size_bytes, sha256=digest.hexdigest())


def _link(copy: Path, home: Path, one: StoredFile) -> None:
    """Make the copy the object, or a link to the object that is there and sound."""
    with contextlib.suppress(FileExistsError):
        os.link(copy, home)  # of two that add the same at once one is first, and the other sees it
        _sync(home.parent)
        return
    if _fault(home, one):
        new = copy.with_name(f"{copy.name}.object")
        os.link(copy, new)
        new.replace(home)
        _sync(home.parent)
        return
    link = copy.with_name(f"{copy.name}.link")
    os.link(home, link)
    link.replace(copy)
    link.unlink(missing_ok=True)  # where both are one file, replace does nothing


def _fault(path: Path, one: StoredFile) -> str:
    """Return what is wrong with a file of the store; empty: nothing."""
    try:
        size_bytes = path.stat().st_size
        if size_bytes != one.size_bytes:
            return f"has {size_bytes:,} bytes instead of {one.size_bytes:,}"
        return "" if sha256_of(path) == one.sha256 else "has other bytes than were added (sha256)"
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"


def _files(folder: Path) -> list[Path]:
    return [one for one in folder.rglob("*") if one.is_file()]


def _all_files(folders: Iterable[Path]) -> list[Path]:
    """Return files of folders, and files among them."""
    return [f for one in folders for f in (_files(one) if one.is_dir() else [one])]


def _inode(file: Path) -> tuple[int, int]:
    found = file.stat()
    return found.st_dev, found.st_ino


def _sync_tree(folder: Path) -> None:
    for one in (folder, *(one for one in folder.rglob("*") if one.is_dir())):
        _sync(one)


def _sync(folder: Path) -> None:
    """See to it that names in a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _told_of(folder: Path) -> Iterator[None]:
    with OSErrorsAs(
        ToolError, f"cannot write to {folder}", remedy="free some space, then add it again"
    ):
        yield


def _unwritable(folder: Path, error: OSError) -> UsageError:
    is_file = isinstance(error, FileExistsError | NotADirectoryError)
    why = "there is a file of that name" if is_file else error.strerror or str(error)
    return UsageError(f"models cannot be kept in {folder}", why=why,
                      remedy="name another folder with --store")  # fmt: skip
