"""Checkpoints as files: ``step-000000123.npz`` and, last, the marker that makes it count.

A checkpoint is written under another name, brought to the disk, named, and then its marker
``step-000000123.json`` is put beside it in one step. Without a marker that is whole and fits its
data there is no checkpoint, so a kill at any moment costs at most the one being written. Data are
arrays that numpy reads without pickle: ``np.load(PATH)``, with the names in the marker.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.runtime.checkpoint.plain_json import from_plain, unsealed

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMAT = 1
Array = np.ndarray[Any, Any]
OWN_NAME = re.compile(r"(step-\d{9,})(-\d+)?\.(npz|json)(\.part)?")
CHUNK_BYTES = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where training stands: epochs and steps from 0, as Keras counts them.

    ``data`` is the trainer's own description of where its data stand, as plain values.
    """

    epoch: int = 0
    step_in_epoch: int = 0
    seed: int | None = None
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One array of the data file: a variable's value, or an array that ``extra`` holds."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What a marker says. ``serial`` counts the checkpoints of a folder as they were written.

    ``variables`` come first in the data file, then ``arrays``: those that ``extra`` refers to.
    """

    marker: Path
    step: int
    serial: int
    pinned: bool
    position: Position
    variables: tuple[Entry, ...]
    arrays: tuple[Entry, ...]
    history: dict[str, Any]
    extra: Any
    random: dict[str, Any]
    written: str
    data_name: str
    data_bytes: int
    data_crc32: int

    @property
    def data(self) -> Path:
        """The file of arrays."""
        return self.marker.with_name(self.data_name)


class DamagedError(ValueError):
    """A checkpoint is not what was written."""


def member_name(number: int) -> str:
    """Return numbers, not names: a variable may be called anything, also the same as another."""
    return f"{number:06}"


def read_marker(marker: Path) -> Checkpoint:
    """Return what a marker says.

    Raises:
        DamagedError: It is not what was written, or cannot be read.
        UsageError: A later tfdyno wrote it.
    """
    try:
        content = unsealed(marker.read_bytes())
    except (OSError, ValueError) as error:
        raise DamagedError(f"its marker cannot be read ({error})") from None
    if content.get("format") != FORMAT:
        what = f"{marker} has the format {content.get('format')}"
        raise UsageError(what, why=f"this tfdyno reads {FORMAT}", remedy="use the newer tfdyno")
    data = content["data"]
    position = {name: content[name] for name in ("epoch", "step_in_epoch", "seed")}
    return Checkpoint(
        marker=marker,
        step=content["step"],
        serial=content["serial"],
        pinned=content["pinned"],
        position=Position(**position, data=from_plain(content["position"], {})),
        variables=tuple(_entry(*raw) for raw in content["variables"]),
        arrays=tuple(_entry(*raw) for raw in content["arrays"]),
        history=from_plain(content["history"], {}),
        extra=content["extra"],
        random=from_plain(content["random"], {}),
        written=content["written"],
        data_name=data["name"],
        data_bytes=data["bytes"],
        data_crc32=data["crc32"],
    )


def _entry(name: str, shape: list[int], dtype: str) -> Entry:
    return Entry(name=name, shape=tuple(shape), dtype=dtype)


def check_data(checkpoint: Checkpoint) -> None:
    """Compare the data file with its marker.

    Raises:
        DamagedError: It is missing, too short, or has other content.
    """
    size = crc32 = 0
    try:
        with checkpoint.data.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                size, crc32 = size + len(chunk), zlib.crc32(chunk, crc32)
    except OSError as error:
        raise DamagedError(f"{checkpoint.data_name}: {error.strerror or error}") from None
    if size != checkpoint.data_bytes:
        sizes = f"{size:,} instead of {checkpoint.data_bytes:,} bytes"
        raise DamagedError(f"{checkpoint.data_name} has {sizes}")
    if crc32 != checkpoint.data_crc32:
        raise DamagedError(f"{checkpoint.data_name} has other content than was written")


def read_arrays(checkpoint: Checkpoint) -> Iterator[tuple[Entry, Array]]:
    """Give each array of the data file, one at a time in memory.

    Raises:
        ToolError: The file cannot be read.
    """
    entries = [*checkpoint.variables, *checkpoint.arrays]
    try:
        with np.load(checkpoint.data, allow_pickle=False) as archive:
            for number, entry in enumerate(entries):
                array = archive[member_name(number)]
                same = array.dtype.name == entry.dtype
                yield entry, array if same else array.view(dtype_named(entry.dtype))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise ToolError(f"cannot read {checkpoint.data}", why=str(error)) from None


def dtype_named(name: str) -> np.dtype[Any]:
    """Return a dtype by its name, with those that TensorFlow has and numpy has not."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))


def list_checkpoints(folder: Path) -> tuple[list[Checkpoint], dict[Path, str]]:
    """List all with a whole marker, the newest first; and the other markers with what ails them."""
    found, damaged = [], {}
    for marker in sorted(folder.glob("step-*.json")):
        if not OWN_NAME.fullmatch(marker.name):
            continue
        try:
            found.append(read_marker(marker))
        except DamagedError as error:
            damaged[marker] = str(error)
    return sorted(found, key=lambda checkpoint: checkpoint.serial, reverse=True), damaged


def latest(folder: Path, notes: list[str] | None = None) -> Checkpoint | None:
    """Return the newest checkpoint whose files are whole; None where there is none.

    Args:
        folder: Where they lie.
        notes: Receives a sentence for each damaged one that is passed over.

    Raises:
        UsageError: A later tfdyno wrote one of them.
    """
    notes = [] if notes is None else notes
    found, damaged = list_checkpoints(folder)
    for marker, reason in damaged.items():
        notes.append(f"{marker.stem} is damaged and left out: {reason}.")
    for checkpoint in found:
        try:
            check_data(checkpoint)
        except DamagedError as error:
            notes.append(f"{checkpoint.marker.stem} is damaged and left out: {error}.")
        else:
            return checkpoint
    return None
