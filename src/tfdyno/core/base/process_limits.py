"""What the system lets this process have: its processors, and what its control groups leave it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

Text = Callable[[str], str]
"""Gives a file of the kernel by its absolute path; empty where it cannot be read."""
_MOUNT = "/sys/fs/cgroup"


def allowed() -> tuple[int, ...]:
    """List the processors that the scheduler may give to this process, sorted.

    Where the system does not tell they are all of the machine's, from 0.
    """
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def groups(text: Text, controller: str) -> Iterator[tuple[int, str]]:
    """Yield version and folder of each control group of the process, and of those above it.

    In a container only the topmost exists.

    Args:
        text: Reads a file.
        controller: As version 1 calls it: ``cpu``, ``memory``.
    """
    for names, path in re.findall(r"^\d+:([^:]*):(.*)$", text("/proc/self/cgroup"), re.MULTILINE):
        mounts = {_MOUNT: 2}
        if names:
            is_of = controller in names.split(",")
            mounts = {f"{_MOUNT}/{one}": 1 for one in (controller, names) if is_of}
        group = PurePosixPath(path.strip() or "/")
        for mount, version in mounts.items():
            for one in (group, *group.parents):
                yield version, f"{mount}{one}".rstrip("/")


def quotas(text: Text) -> Iterator[float]:
    """Yield how many processors each control group with a limit may keep busy: 1.5 for 150 %."""
    for version, folder in groups(text, "cpu"):
        if version == 2:
            pair = text(f"{folder}/cpu.max").split()[:2]
        else:
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            pair = [text(f"{folder}/{name}").strip() for name in names]
        if len(pair) == 2 and all(each.isdecimal() for each in pair) and int(pair[1]):
            yield int(pair[0]) / int(pair[1])
