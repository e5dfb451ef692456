"""Writing, pinning and removing the checkpoints of a folder, so that a kill leaves no half one."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import zipfile
import zlib
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

from tfdyno.core.base.errors import ToolError
from tfdyno.runtime.checkpoint.files import (
    CHUNK_BYTES,
    FORMAT,
    OWN_NAME,
    DamagedError,
    list_checkpoints,
    member_name,
)
from tfdyno.runtime.checkpoint.plain_json import sealed, unsealed

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Container, Iterable, Mapping
    from pathlib import Path

    from tfdyno.core.base.untyped import Dataset, Value
    from tfdyno.runtime.checkpoint.files import Array, Checkpoint

_PART = ".part"
REMEDIES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some of your quota",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f)",
}
"""What to do where the system does not take more."""


def write_checkpoint(
    folder: Path, content: dict[str, Any], variables: Mapping[str, Array], arrays: dict[str, Array]
) -> Path:
    """Write a checkpoint to the disk; the one of the same step is replaced in one step.

    Args:
        folder: Where; it must exist.
        content: What the marker holds beside the data: plain values with ``step``.
        variables: The values of the variables by name, in their order.
        arrays: The arrays that ``extra`` refers to.

    Returns:
        The marker.

    Raises:
        OSError: As the system says it; nothing of this checkpoint is left then.
    """
    marker = folder / f"step-{content['step']:09}.json"
    data = _free_name(marker.with_suffix(".npz"))
    values = [*variables.values(), *arrays.values()]
    size, crc32 = 0, 0

    def fill(path: Path) -> None:
        nonlocal size, crc32
        size, crc32 = _write_arrays(path, values)

    _write_durably(data, fill)
    whole = {
        "format": FORMAT,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        **content,
        "data": {"name": data.name, "bytes": size, "crc32": crc32},
        "variables": [_described(name, value) for name, value in variables.items()],
        "arrays": [_described(name, value) for name, value in arrays.items()],
    }
    try:
        _write_durably(marker, lambda path: _write_bytes(path, sealed(whole)))
    except OSError:
        _remove(data)  # no marker names it
        raise
    for old, name in _own_files(folder):
        if name[1] == marker.stem and name[3] == "npz" and old != data:
            _remove(old)  # of the checkpoint that the marker named until now
    return marker


def _own_files(folder: Path) -> list[tuple[Path, re.Match[str]]]:
    names = ((path, OWN_NAME.fullmatch(path.name)) for path in sorted(folder.iterdir()))
    return [(path, name) for path, name in names if name]


def refusal(folder: Path, step: int, error: OSError, size_bytes: int) -> ToolError:
    """Return the system's refusal of a checkpoint as a sentence, with what can be done."""
    why = error.strerror or str(error)
    remedy = REMEDIES.get(error.errno or 0, "make the folder writable again")
    if error.errno in REMEDIES:
        why += f", {size_bytes:,} bytes needed"
        with contextlib.suppress(OSError):
            why += f", {shutil.disk_usage(folder).free:,} free"
    what = f"cannot write the checkpoint of step {step} to {folder}"
    return ToolError(what, why=why, remedy=f"{remedy}, then continue with --resume")


def _free_name(path: Path) -> Path:
    """Return ``path``, or a name beside it while the checkpoint there is still the valid one."""
    number, free = 0, path
    while free.exists():
        number += 1
        free = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return free


def _described(name: str, value: Array) -> list[Any]:
    return [name, list(value.shape), value.dtype.name]


def _write_durably(path: Path, fill: Callable[[Path], None]) -> None:
    part = path.with_name(path.name + _PART)
    try:
        fill(part)
        part.replace(path)
    except OSError:
        _remove(part)
        raise
    with contextlib.suppress(OSError):  # some file systems cannot and need not
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk; raises ``OSError`` where that fails."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _write_bytes(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


class _Summed:
    """A file that counts and sums what is written to it."""

    def __init__(self, file: Value) -> None:
        self._file, self.size, self.crc32 = file, 0, 0

    def write(self, data: Dataset) -> int:
        count: int = self._file.write(data)
        self.size += count
        self.crc32 = zlib.crc32(data, self.crc32)
        return count

    def flush(self) -> None:
        self._file.flush()


def _write_arrays(path: Path, arrays: Iterable[Array]) -> tuple[int, int]:
    """Write a ``.npz`` as numpy does, without its copies; returns bytes and CRC-32 of the file."""
    with path.open("wb") as file:
        summed = _Summed(file)
        with zipfile.ZipFile(cast("IO[bytes]", summed), "w", allowZip64=True) as archive:
            for number, array in enumerate(arrays):
                member = zipfile.ZipInfo(f"{member_name(number)}.npy")
                with archive.open(member, "w", force_zip64=True) as entry:
                    _write_array(entry, array)
        file.flush()
        os.fsync(file.fileno())
    return summed.size, summed.crc32


def _write_array(entry: Value, array: Array) -> None:
    stored = np.asarray(array, order="C")
    if stored.dtype.isbuiltin == 2:  # bfloat16, float8, int4: numpy has no name for them
        stored = stored.view(f"uint{8 * stored.dtype.itemsize}")
    header = np.lib.format.header_data_from_array_1_0(stored)
    np.lib.format.write_array_header_2_0(entry, header)
    if not stored.nbytes:
        return
    raw = stored.reshape(-1).view(np.uint8)
    for start in range(0, len(raw), CHUNK_BYTES):
        entry.write(raw[start : start + CHUNK_BYTES].data)


def pin(checkpoint: Checkpoint) -> None:
    """Keep a checkpoint for good.

    Raises:
        DamagedError: It is gone, or its marker is not what was written.
        OSError: The marker cannot be written.
    """
    try:
        content = unsealed(checkpoint.marker.read_bytes())
    except (OSError, ValueError) as error:
        raise DamagedError(f"its marker cannot be read ({error})") from None
    sealed_again = sealed({**content, "pinned": True})
    _write_durably(checkpoint.marker, lambda path: _write_bytes(path, sealed_again))


def remove_old(folder: Path, keep: int, damaged: Container[str] = ()) -> None:
    """Remove all but the newest ``keep`` checkpoints and the pinned ones, the marker first.

    Args:
        folder: Where they lie.
        keep: How many stay.
        damaged: Markers, by name, of checkpoints that are known to be damaged: they do not count
            among those that stay, and go when enough good ones have followed.

    Raises:
        OSError: A file cannot be removed.
    """
    good = 0
    for checkpoint in list_checkpoints(folder)[0]:
        if good >= keep and not checkpoint.pinned:
            checkpoint.marker.unlink(missing_ok=True)
            checkpoint.data.unlink(missing_ok=True)
        good += checkpoint.marker.name not in damaged


def remove_leftovers(folder: Path) -> list[str]:
    """Remove what a kill left of a checkpoint that was being written or removed.

    Only for the run that holds the folder's lock: for others it may be work in progress.

    Returns:
        The names of the files.

    Raises:
        OSError: A file cannot be removed.
    """
    found, damaged = list_checkpoints(folder)
    stems = {marker.stem for marker in damaged}
    named = {checkpoint.data_name for checkpoint in found}
    removed = []
    for path, name in _own_files(folder):
        orphan = name[3] == "npz" and path.name not in named and name[1] not in stems
        if name[4] or orphan:
            path.unlink(missing_ok=True)
            removed.append(path.name)
    return removed
