"""Which processor a machine has and how much of it this process may use."""

from __future__ import annotations

import os
import platform
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.probe.base.host import Host

MOUNT = "/sys/fs/cgroup"


def name(host: Host) -> str:
    """Return ``AMD EPYC 7B13`` as the processor says; the architecture where it does not."""
    text = host.text("/proc/cpuinfo", limit=8192)
    for label in ("model name", "Model", "Hardware"):
        line = re.search(rf"^{label}\s*:\s*(\S.*)$", text, re.MULTILINE)
        if line:
            return " ".join(line[1].split())
    told = platform.processor() if host.is_live else ""
    return host.environment.get("PROCESSOR_IDENTIFIER") or told or host.architecture


def allowed() -> tuple[int, ...]:
    """List logical processors that the scheduler may give to this process, sorted."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def usable(host: Host) -> float:
    """Count processors this process may keep busy: those allowed, or its quota if that is less.

    A quota of 150 % is 1.5; of all control groups that the process is in, the strictest counts.
    """
    return min([float(len(allowed())), *_quotas(host)])


def busy_s(which: tuple[int, ...]) -> float | None:
    """Return seconds that these processors have been busy together since the machine started.

    Time that a hypervisor gave to others counts: the processes here did not get it. None where
    the system does not count.
    """
    import psutil

    try:
        whole = len(which) == os.cpu_count()
        every = [psutil.cpu_times()] if whole else psutil.cpu_times(percpu=True)
        some = every if whole else [every[index] for index in which if index < len(every)]
    except (OSError, psutil.Error):
        return None
    # A guest's time is part of its user time already.
    idle = ("idle", "iowait", "guest", "guest_nice")
    seconds = [sum(one) - sum(getattr(one, name, 0.0) for name in idle) for one in some]
    return sum(seconds) if any(sum(one) for one in some) else None


def _quotas(host: Host) -> Iterator[float]:
    """Read quotas of the process's control groups, of versions 2 and 1, in processors."""
    groups = host.text("/proc/self/cgroup")
    for _, controllers, path in re.findall(r"^(\d+):([^:]*):(.*)$", groups, re.MULTILINE):
        if controllers == "":
            for folder in _upwards(MOUNT, path):
                limit = host.text(f"{folder}/cpu.max").split()
                yield from _ratio(limit[:1], limit[1:2])
        elif "cpu" in controllers.split(","):
            for mount in (f"{MOUNT}/cpu", f"{MOUNT}/cpu,cpuacct"):
                for folder in _upwards(mount, path):
                    quota = host.text(f"{folder}/cpu.cfs_quota_us").split()
                    yield from _ratio(quota, host.text(f"{folder}/cpu.cfs_period_us").split())


def _upwards(mount: str, path: str) -> Iterator[str]:
    """List a control group's folder and those above; in a container only the topmost exists."""
    group = PurePosixPath(path.strip() or "/")
    for one in (group, *group.parents):
        yield f"{mount}{one}".rstrip("/")


def _ratio(quota: list[str], period: list[str]) -> Iterator[float]:
    """Divide; ``max`` and -1 mean no quota."""
    if quota and period and quota[0].isdecimal() and period[0].isdecimal() and int(period[0]):
        yield int(quota[0]) / int(period[0])
