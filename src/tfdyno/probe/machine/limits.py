"""How much a process may have: shared and locked memory, open files, memory of its container."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfdyno.probe.base.host import Host

SHARED = "/dev/shm"
_GROUPS = "/sys/fs/cgroup"
MOST_BYTES = 1 << 60
"""What control groups of version 1 write for no limit is above it."""


def shared_memory_bytes(folder: str = SHARED) -> tuple[int, int]:
    """Return size of the shared memory and how much is free; -1 where there is none."""
    try:
        there = os.statvfs(folder)
    except (OSError, AttributeError):
        return -1, -1
    return there.f_blocks * there.f_frsize, there.f_bavail * there.f_frsize


def soft_limit(name: str) -> int:
    """Return a limit as ``ulimit`` shows it; -1: none, or not known.

    Args:
        name: As in the module ``resource``: ``RLIMIT_MEMLOCK``.
    """
    try:
        import resource

        value = resource.getrlimit(getattr(resource, name))[0]
    except (ImportError, AttributeError, OSError, ValueError):
        return -1
    return -1 if value == resource.RLIM_INFINITY else value


def memory_limit_bytes(host: Host) -> int:
    """Return the strictest limit of memory of the process's control groups; -1: none."""
    found = []
    for line in host.text("/proc/self/cgroup").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers and "memory" not in controllers.split(","):
            continue
        mount, name = (
            (f"{_GROUPS}/memory", "memory.limit_in_bytes") if controllers
            else (_GROUPS, "memory.max")
        )  # fmt: skip
        parts = [part for part in path.split("/") if part]
        for depth in range(len(parts) + 1):
            limit = host.text("/".join([mount, *parts[:depth], name])).strip()
            if limit.isdecimal() and int(limit) < MOST_BYTES:
                found.append(int(limit))
    return min(found, default=-1)
