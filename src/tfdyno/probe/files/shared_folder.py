"""The folder of a run on a file system that several nodes share: what it is, how fast, how soon."""

from __future__ import annotations

import contextlib
import os
import re
import time
from typing import TYPE_CHECKING

from tfdyno.core.cluster.cluster_facts import FolderFacts

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.probe.base.host import Host

POLL_S = 0.005
CHUNK_BYTES = 1 << 20
_ESCAPE = re.compile(r"\\([0-7]{3})")


def folder_facts(host: Host, folder: Path) -> FolderFacts:
    """Return a folder's file system and room; of one that is not there, of the one above."""
    real = folder.absolute()
    while not real.exists() and real != real.parent:
        real = real.parent
    kind, options = mount_of(host.text("/proc/self/mountinfo"), os.path.realpath(real))
    free = -1
    with contextlib.suppress(OSError):
        there = os.statvfs(real)
        free = there.f_bavail * there.f_frsize
    return FolderFacts(path=str(folder), filesystem=kind, options=options, free_bytes=free)


def mount_of(mountinfo: str, path: str) -> tuple[str, str]:
    """Return file system and options of a path's mount; empty where none is told.

    Args:
        mountinfo: As ``/proc/self/mountinfo`` has it.
        path: Absolute, without links.
    """
    best, found = -1, ("", "")
    for line in mountinfo.splitlines():
        words = line.split()
        if "-" not in words or len(words) < 10:
            continue
        place = _ESCAPE.sub(lambda code: chr(int(code[1], 8)), words[4])
        inside = path == place or path.startswith(place.rstrip("/") + "/")
        if inside and len(place) >= best:
            dash = words.index("-")
            best = len(place)
            found = words[dash + 1], ",".join(dict.fromkeys([words[5], *words[dash + 3 :]]))
    return found


def seen_after_s(path: Path, wanted: bytes, limit_s: float) -> float | None:
    """Return seconds until a file holds just these bytes; None: not within the limit."""
    began_s = time.monotonic()
    while True:
        with contextlib.suppress(OSError):
            if path.read_bytes() == wanted:
                return time.monotonic() - began_s
        if time.monotonic() - began_s > limit_s:
            return None
        time.sleep(POLL_S)


def write_through(path: Path, content: bytes, *, append: bool = False) -> None:
    """Write to a file and wait until the file system has it; raises ``OSError``."""
    with path.open("ab" if append else "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def write_bytes_per_s(path: Path, size_bytes: int) -> float:
    """Return speed of writing a file until the file system has it; raises ``OSError``."""
    chunk = os.urandom(CHUNK_BYTES)  # some file systems pack what repeats
    began_s = time.perf_counter()
    with path.open("wb") as file:
        for _ in range(max(1, size_bytes // CHUNK_BYTES)):
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return path.stat().st_size / max(1e-9, time.perf_counter() - began_s)


def read_bytes_per_s(path: Path) -> float:
    """Return a file's read speed, memory of it dropped where that can be; raises ``OSError``."""
    size = 0
    with path.open("rb", buffering=0) as file:
        with contextlib.suppress(OSError, AttributeError):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        began_s = time.perf_counter()
        while part := file.read(CHUNK_BYTES):
            size += len(part)
        return size / max(1e-9, time.perf_counter() - began_s)
