"""The files that a pipeline reads: which they are, and how fast the disk gives them in order."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.core.measure.feed import DiskFacts
from tfdyno.process.control_groups import text_of
from tfdyno.runtime.diagnose.input import read_bytes
from tfdyno.runtime.workload.input_stages import kind, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from tfdyno.core.base.untyped import Dataset

MOST_READ_BYTES = 512 << 20
MOST_READ_S = 3.0
"""The longest time of the cold reading; what it read is read warm again."""
MOST_FORGET_S = 5.0
_CHUNK_BYTES = 1 << 20
_MOST_NAMES = 2_000_000
_TRIED_NAMES = 20
_MOST_SIZED = 2_000
"""The most files that are looked at for the size of all."""
_LOOK_S = 0.002
_NOT_DATA = (".py", ".pyc", ".so", ".pyi", ".log", ".json.part")


def named_files(dataset: Dataset) -> tuple[str, ...]:
    """Return files whose names a source of the pipeline holds, in its order.

    A tensor of text holds names if one of a few of its values is a file.
    """
    found: dict[str, None] = {}
    for stage in walk(dataset):
        for tensor in _texts(stage):
            values = tf.reshape(tensor, [-1])[:_MOST_NAMES].numpy()
            names = [value.decode(errors="surrogateescape") for value in values]
            if any(map(os.path.isfile, _sample(names, _TRIED_NAMES))):
                found.update(dict.fromkeys(names))
    return tuple(found)


def _texts(stage: Dataset) -> list[Any]:
    """Return tensors of text that a source holds: file names of a reader, or elements."""
    named = getattr(stage, "_filenames", None)
    if isinstance(named, tf.data.Dataset):
        return [text for source in walk(named) for text in _texts(source)]
    held = [named] if named is not None else []
    if kind(stage) == "tensor_slice":
        held += stage._tensors
    return [one for one in held if tf.is_tensor(one) and one.dtype == tf.string]


class OpenedFiles:
    """Files that this process has open while a block runs, seen by looking again and again.

    For readers that name no file to the pipeline. Files that are opened and closed between two
    looks are missed.
    """

    def __init__(self) -> None:
        """Begin with nothing seen."""
        self.seen: dict[str, None] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        """Look from now on."""
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Look no more."""
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(_LOOK_S):
            with contextlib.suppress(OSError):
                for number in os.listdir("/proc/self/fd"):  # noqa: PTH208  (each 2 ms)
                    self._note(number)

    def _note(self, number: str) -> None:
        with contextlib.suppress(OSError, ValueError, IndexError):  # it is closed meanwhile
            path = os.readlink(f"/proc/self/fd/{number}")  # noqa: PTH115
            if path in self.seen or path.endswith(_NOT_DATA) or not path.startswith("/"):
                return
            flags = int(text_of(Path(f"/proc/self/fdinfo/{number}")).split()[3], 8)
            is_read = flags & os.O_ACCMODE == os.O_RDONLY
            status = os.stat(path)  # noqa: PTH116
            if is_read and stat.S_ISREG(status.st_mode) and not path.startswith(("/proc", "/sys")):
                self.seen[path] = None


def forget(
    files: Sequence[str],
    *,
    most_s: float = MOST_FORGET_S,
    now: Callable[[], float] = time.monotonic,
) -> bool:
    """Ask the system to forget what it keeps of these files in memory; returns whether all were.

    It needs no rights and changes no file; a system may ignore it (man 2 posix_fadvise).
    """
    if not hasattr(os, "posix_fadvise"):
        return False
    until = now() + most_s
    for name in files:
        with contextlib.suppress(OSError):
            handle = os.open(name, os.O_RDONLY)
            try:
                os.fdatasync(handle)  # what is not written yet cannot be forgotten
                os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(handle)
        if now() >= until:
            return False
    return True


def disk_facts(
    files: Sequence[str],
    *,
    most_bytes: int = MOST_READ_BYTES,
    most_s: float = MOST_READ_S,
    cold: bool = True,
    now: Callable[[], float] = time.perf_counter,
) -> DiskFacts | None:
    """Read files that are spread over all of them, one after the other: cold, then warm.

    Args:
        files: Of the pipeline, in its order.
        most_bytes: Stop after so many.
        most_s: Stop the cold reading after so long.
        cold: Whether to ask the system to forget them before; else both readings are warm.
        now: A clock in seconds.

    Returns:
        None where nothing could be read.
    """
    sized = _sample(files, _MOST_SIZED)
    sizes = [_size(name) for name in sized]
    if not sum(sizes):
        return None
    mean_bytes = sum(sizes) / len(sizes)
    chosen = _sample(sized, max(1, min(len(sized), int(most_bytes / mean_bytes) + 1)))
    if cold:
        forget(chosen)
    before, began = read_bytes("read_bytes"), now()
    read, count = _read(chosen, most_bytes, lambda: now() - began >= most_s)
    cold_s, from_disk = now() - began, read_bytes("read_bytes") - before
    if not read:
        return None
    began = now()
    _read(chosen, read, lambda: False)
    return DiskFacts(
        files=len(files),
        total_bytes=round(mean_bytes * len(files)),
        read_files=count,
        read_bytes=read,
        cold_s=cold_s,
        warm_s=max(now() - began, 1e-9),
        disk_bytes=from_disk,
        file_system=file_system(chosen[0]),
    )


def file_system(name: str) -> str:
    """Return ``ext4``: what holds a file, by the longest mount point; empty: not known."""
    path = str(Path(name).resolve())
    rows = [row.split() for row in text_of(Path("/proc/self/mounts")).splitlines()]
    held = [
        (len(row[1]), row[2])
        for row in rows
        if len(row) > 2 and (path == row[1] or path.startswith(row[1].rstrip("/") + "/"))
    ]
    return max(held, default=(0, ""))[1]


def _sample(names: Sequence[str], count: int) -> list[str]:
    """Take at most so many of them, evenly over the whole, in their order."""
    if len(names) <= count:
        return list(names)
    return [names[at * len(names) // count] for at in range(count)]


def _size(name: str) -> int:
    try:
        return os.stat(name).st_size  # noqa: PTH116
    except OSError:
        return 0


def _read(names: Sequence[str], most_bytes: int, is_over: Callable[[], bool]) -> tuple[int, int]:
    """Count bytes read, and of how many files; a file that cannot be read is left out."""
    buffer = memoryview(bytearray(_CHUNK_BYTES))
    total = count = 0
    for name in names:
        with contextlib.suppress(OSError), open(name, "rb", buffering=0) as file:  # noqa: PTH123
            count += 1
            while size := file.readinto(buffer[: max(0, most_bytes - total)]):
                total += size
                if is_over():
                    return total, count
        if total >= most_bytes:
            break
    return total, count
