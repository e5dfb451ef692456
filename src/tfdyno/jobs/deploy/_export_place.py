"""Where exports go: built in a hidden folder beside, put in place by renaming, or not at all."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_json, write_atomic
from tfdyno.core.base.errors import OSErrorsAs, TfdynoError, UsageError
from tfdyno.core.base.lock import lock_folder
from tfdyno.core.deploy.export import RECORD
from tfdyno.store.cache import sha256_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_OURS = (RECORD, "saved_model.pb")
"""A folder with one of these is an export, which ``--force`` may replace."""
_MARK, _OLD = ".export-", "old"
_REPLACES = "replaces"
"""The key in a record while its file goes into place: digest and record of the file that it
replaces."""


def check_place(
    path: Path, *, force: bool, needed: Sequence[Path] = (), is_folder: bool = False
) -> None:
    """Refuse a place that is taken or cannot be written, before any work.

    Args:
        path: Where the export goes.
        force: Whether it may replace an export.
        needed: What is read: the model, the data.
        is_folder: Whether a folder is written, which replaces no file.

    Raises:
        UsageError: It is refused.
    """
    folder = path.parent
    if not folder.is_dir():
        raise UsageError(f"cannot write {path}", why=f"there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"cannot write {path}", why=f"no permission to write in {folder}")
    if not path.exists() and not path.is_symlink():
        return
    if not force:
        raise UsageError(f"{path} exists", remedy="name another place, or replace it with --force")
    whole = path.resolve()
    for one in needed:
        if whole == one.resolve() or whole in one.resolve().parents:
            raise UsageError(f"{path} is what is read, or holds it",
                             remedy="name another place")  # fmt: skip
    if is_folder and not path.is_dir():
        raise UsageError(f"{path} is a file, and a folder is written",
                         remedy="name another place")  # fmt: skip
    is_ours = not path.is_dir() or any((path / name).exists() for name in _OURS)
    if not is_ours and any(path.iterdir()):
        raise UsageError(f"{path} is a folder that holds no export", why="--force does not take it",
                         remedy="name another place")  # fmt: skip


@contextlib.contextmanager
def stage(path: Path) -> Iterator[Path]:
    """Make a hidden folder beside ``path``, gone at the end; those of kills before go too.

    Raises:
        UsageError: It cannot be made.
    """
    prefix = f".{path.name}{_MARK}"
    for left in path.parent.glob(f"{glob.escape(prefix)}*"):
        _sweep(left, path)
    with OSErrorsAs(UsageError, f"cannot write {path}"):
        folder = Path(tempfile.mkdtemp(dir=path.parent, prefix=prefix))
    try:
        with lock_folder(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sweep(left: Path, path: Path) -> None:
    """Remove what a killed export left; one that still runs holds its lock.

    A kill between the two renames of ``put`` leaves the export that was there aside: it goes back.
    """
    with contextlib.suppress(TfdynoError, OSError):
        lock_folder(left).close()
        if (left / _OLD).exists() and not path.exists():
            (left / _OLD).replace(path)
        shutil.rmtree(left, ignore_errors=True)


def put(made: Path, path: Path) -> None:
    """Move a file or folder into place; what was there is gone only when the new one stands."""
    made.chmod(0o777 & ~_umask() if made.is_dir() else 0o666 & ~_umask())
    if not path.is_dir() or path.is_symlink():
        if made.is_dir() and path.exists():
            path.unlink()
        made.replace(path)
        return
    aside = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}{_MARK}")) / _OLD
    try:
        with lock_folder(aside.parent):  # else an export beside sweeps it
            path.replace(aside)
            try:
                made.replace(path)
            except BaseException:
                aside.replace(path)
                raise
    finally:
        shutil.rmtree(aside.parent, ignore_errors=True)


def put_with_record(made: Path, path: Path, record: Mapping[str, Any], *, folder: Path) -> None:
    """Move a file into place, and its record beside it.

    Two renames are not one: the record goes first, and until the file is there it holds that of
    the file before as well, so that a kill in between leaves either file with what is true of it.

    Args:
        made: The file.
        path: Where it goes.
        record: What is known of it.
        folder: The stage, where the record is written.
    """

    def write(told: Mapping[str, Any]) -> None:
        write_atomic(folder / RECORD, to_json(told, indent=2) + b"\n")
        put(folder / RECORD, record_beside(path))

    if not path.exists():
        write(record)
        put(made, path)
        return
    before = {"sha256": digest(path), "record": _own_record(path)}
    write({**record, _REPLACES: before})
    put(made, path)
    write(record)


def record_beside(path: Path) -> Path:
    """Return where the record of a file lies."""
    return path.with_name(f"{path.name}.{RECORD}")


def record_of(record: dict[str, Any], path: Path) -> dict[str, Any]:
    """Read the record of the file that is there: see ``put_with_record``; empty: nothing."""
    before = record.get(_REPLACES)
    if isinstance(before, dict) and before.get("sha256") == digest(path):
        record = before.get("record") or {}
    return {key: value for key, value in record.items() if key != _REPLACES}


def _own_record(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(record_beside(path).read_bytes())
    except (OSError, ValueError):
        return {}
    return record_of(found, path) if isinstance(found, dict) else {}


def size_of(path: Path) -> int:
    """Return bytes of a file, or of all files in a folder."""
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return sum(one.stat().st_size for one in files)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file; of a folder, of the sorted names and digests of its files."""
    if path.is_file():
        return sha256_of(path)
    whole = hashlib.sha256()
    for one in sorted(path.rglob("*")):
        if one.is_file() and one.name != RECORD:
            whole.update(f"{one.relative_to(path).as_posix()}\0{sha256_of(one)}\n".encode())
    return whole.hexdigest()


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask
