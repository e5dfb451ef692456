"""What a container may have of CPUs and memory: its control groups, of version 1 and 2."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.base.process_limits import groups

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tfdyno.core.base.process_limits import Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttling:
    """Counters of one control group that has a CPU limit."""

    periods: int = 0
    held_periods: int = 0
    held_s: float = 0.0


def throttling(root: Path) -> Throttling:
    """Read the counters of the control group that was held back longest."""
    found = Throttling()
    text = texts(root)
    for version, folder in groups(text, "cpu"):
        counters = dict(re.findall(r"^(\w+) (\d+)$", text(f"{folder}/cpu.stat"), re.MULTILINE))
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
    text = texts(root)
    for version, folder in groups(text, "memory"):
        names = ("memory.max", "memory.current")
        if version == 1:
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
        limit, used = (text(f"{folder}/{name}").strip() for name in names)
        if limit.isdecimal() and used.isdecimal():
            kept = text(f"{folder}/memory.stat")
            cached = re.search(r"^inactive_file (\d+)$", kept, re.MULTILINE)
            room = max(0, int(limit) - int(used) + (int(cached[1]) if cached else 0))
            yield min(room, int(limit)), int(limit)


def text_of(file: Path) -> str:
    """Return a file of the kernel's; empty where it cannot be read."""
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def texts(root: Path) -> Text:
    """Return what reads the kernel's files below a folder."""
    return lambda absolute: text_of(root / absolute.lstrip("/"))
