"""How much a process may have: shared and locked memory, open files, memory of its container."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tfdyno.core.base.process_limits import groups

if TYPE_CHECKING:
    from tfdyno.probe.base.host import Host

SHARED = "/dev/shm"
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
    names = {1: "memory.limit_in_bytes", 2: "memory.max"}
    limits = [
        host.text(f"{folder}/{names[version]}").strip()
        for version, folder in groups(host.text, "memory")
    ]
    known = [int(limit) for limit in limits if limit.isdecimal()]
    return min((one for one in known if one < MOST_BYTES), default=-1)
