"""Find the profile that a person means: a file, or the newest run in a folder of logs."""

from __future__ import annotations

import gzip
import mmap
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.profile.json import read_json_trace
from tfdyno.profile.lines import ProfileError
from tfdyno.profile.planes import read_planes
from tfdyno.profile.tables import limit

if TYPE_CHECKING:
    from tfdyno.profile.lines import Profile

_REMEDY = "give an *.xplane.pb, a *.trace.json.gz or the log folder that tf.profiler wrote"
_KINDS = ((".xplane.pb", ".xplane.pb.gz"), (".trace.json.gz", ".trace.json"))
"""The first kind holds more, so a run that has both is read from it."""
_DATED = re.compile(r"^\d{4}(_\d{2}){5}$")
_GZIP = b"\x1f\x8b"
_TOO_LARGE = "it has more than 2 GiB, which no profile of TensorFlow can have"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Which file is read, and what was left."""

    path: Path
    host_count: int = 1
    notes: tuple[str, ...] = ()


def find_profile(path: Path) -> Found:
    """Return the file to read.

    Raises:
        UsageError: There is none; says what was looked for.
    """
    if path.is_file():
        return Found(path=path)
    if not path.exists():
        raise UsageError(f"there is no {path}", remedy=_REMEDY)
    for kind in _KINDS:
        files = [each for each in path.rglob("*") if each.name.endswith(kind) and each.is_file()]
        if files:
            return _newest(files)
    raise UsageError(
        f"{path} holds no profile", why="no *.xplane.pb or *.trace.json.gz is in it", remedy=_REMEDY
    )


def load_profile(path: Path) -> Profile:
    """Read one file of either kind, packed or not.

    Raises:
        UsageError: It is empty, cut off or no profile; says which.
    """
    try:
        if not path.stat().st_size:
            raise UsageError(f"{path} is empty", remedy=_REMEDY)
        return _parsed(_bytes_of(path))
    except (EOFError, zlib.error, gzip.BadGzipFile):
        why = "it is cut off or damaged: it cannot be unpacked"
    except ProfileError as error:
        why = str(error)
    except OSError as error:
        raise UsageError(f"{path} cannot be read", why=error.strerror or str(error)) from None
    raise UsageError(f"{path} is no profile that can be read", why=why, remedy=_REMEDY)


def _bytes_of(path: Path) -> memoryview:
    """Read the file, unpacked; a plain one is not copied.

    Raises:
        ProfileError: There are more than any profile has.
    """
    most = int(limit("most_bytes"))
    with path.open("rb") as file:
        if file.read(len(_GZIP)) != _GZIP:
            if path.stat().st_size > most:
                raise ProfileError(_TOO_LARGE)
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        file.seek(0)
        with gzip.open(file) as packed:
            data = packed.read(most + 1)
    if len(data) > most:
        raise ProfileError(_TOO_LARGE)
    return memoryview(data)


def _parsed(data: memoryview) -> Profile:
    if bytes(data[:1]) in (b"{", b"["):
        return read_json_trace(data)
    return read_planes(data)


def _newest(files: list[Path]) -> Found:
    """Take of the newest run the host with the largest file; say what else there was."""
    runs: dict[Path, list[Path]] = {}
    for each in files:
        runs.setdefault(each.parent, []).append(each)
    newest = max(runs, key=lambda run: _age(run, runs[run]))
    hosts = sorted(runs[newest], key=lambda each: (-each.stat().st_size, each.name))
    notes = []
    if len(runs) > 1:
        notes.append(f"{len(runs)} runs are in the folder: the newest, {newest.name}, was read.")
    if len(hosts) > 1:
        name = hosts[0].name.split(".")[0]
        notes.append(f"The run has profiles of {len(hosts)} hosts: that of {name} was read.")
    return Found(path=hosts[0], host_count=len(hosts), notes=tuple(notes))


def _age(run: Path, files: list[Path]) -> tuple[bool, str, float]:
    """Order runs by the date in their name, which outlasts a copy; others by file times."""
    dated = bool(_DATED.match(run.name))
    return dated, run.name if dated else "", max(each.stat().st_mtime for each in files)
