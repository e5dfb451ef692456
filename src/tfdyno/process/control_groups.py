"""What a container may have of CPUs and memory: its control groups, of version 1 and 2."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOUNT = "/sys/fs/cgroup"


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttling:
    """Counters of one control group that has a CPU limit."""

    periods: int = 0
    held_periods: int = 0
    held_s: float = 0.0


def quotas(root: Path) -> Iterator[float]:
    """Yield CPU limits of the process's control groups, version 1 and 2: 1.5 for 150 %."""
    for version, folder in _groups(root):
        if version == 2:
            limit = text_of(folder / "cpu.max").split()
            pair = limit[:2]
        else:
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            pair = [text_of(folder / name).strip() for name in names]
        if len(pair) == 2 and all(each.isdecimal() for each in pair) and int(pair[1]):
            yield int(pair[0]) / int(pair[1])


def throttling(root: Path) -> Throttling:
    """Read the counters of the control group that was held back longest."""
    found = Throttling()
    for version, folder in _groups(root):
        counters = dict(re.findall(r"^(\w+) (\d+)$", text_of(folder / "cpu.stat"), re.MULTILINE))
        if "nr_periods" not in counters:
            continue
        if version == 2:
            held_s = int(counters.get("throttled_usec", 0)) / 1e6
        else:
            held_s = int(counters.get("throttled_time", 0)) / 1e9
        one = Throttling(
            periods=int(counters["nr_periods"]),
            held_periods=int(counters.get("nr_throttled", 0)),
            held_s=held_s,
        )
        found = max(found, one, key=lambda each: (each.held_s, each.periods))
    return found


def room_bytes(root: Path) -> Iterator[int]:
    """Yield what each group with a limit of memory has left; cached files count as free."""
    yield from (room for room, _ in rooms_bytes(root))


def rooms_bytes(root: Path) -> Iterator[tuple[int, int]]:
    """Yield the same, each with its limit."""
    for version, folder in _groups(root, "memory"):
        names = ("memory.max", "memory.current")
        if version == 1:
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
        limit, used = (text_of(folder / name).strip() for name in names)
        if limit.isdecimal() and used.isdecimal():
            cached = re.search(
                r"^inactive_file (\d+)$", text_of(folder / "memory.stat"), re.MULTILINE
            )
            room = max(0, int(limit) - int(used) + (int(cached[1]) if cached else 0))
            yield min(room, int(limit)), int(limit)


def text_of(file: Path) -> str:
    """Return a file of the kernel's; empty where it cannot be read."""
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def _groups(root: Path, controller: str = "cpu") -> Iterator[tuple[int, Path]]:
    """Yield version and folder of each group of the process, and of those above it."""
    text = text_of(root / "proc/self/cgroup")
    for controllers, path in re.findall(r"^\d+:([^:]*):(.*)$", text, re.MULTILINE):
        if controllers == "":
            yield from ((2, folder) for folder in _upwards(root, _MOUNT, path))
        elif controller in controllers.split(","):
            for mount in dict.fromkeys((f"{_MOUNT}/{controller}", f"{_MOUNT}/{controllers}")):
                yield from ((1, folder) for folder in _upwards(root, mount, path))


def _upwards(root: Path, mount: str, path: str) -> Iterator[Path]:
    """Yield a group's folder and those above; in a container only the topmost exists."""
    group = PurePosixPath(path.strip() or "/")
    for one in (group, *group.parents):
        yield root / f"{mount}{one}".strip("/")
