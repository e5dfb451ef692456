"""Which processor a machine has and how much of it this process may use."""

from __future__ import annotations

import os
import platform
import re
from typing import TYPE_CHECKING

from tfdyno.core.base.process_limits import allowed, quotas

if TYPE_CHECKING:
    from tfdyno.probe.base.host import Host


def name(host: Host) -> str:
    """Return ``AMD EPYC 7B13`` as the processor says; the architecture where it does not."""
    text = host.text("/proc/cpuinfo", limit=8192)
    for label in ("model name", "Model", "Hardware"):
        line = re.search(rf"^{label}\s*:\s*(\S.*)$", text, re.MULTILINE)
        if line:
            return " ".join(line[1].split())
    told = platform.processor() if host.is_live else ""
    return host.environment.get("PROCESSOR_IDENTIFIER") or told or host.architecture


def usable(host: Host) -> float:
    """Count processors this process may keep busy: those allowed, or its quota if that is less.

    A quota of 150 % is 1.5; of all control groups that the process is in, the strictest counts.
    """
    return min([float(len(allowed())), *quotas(host.text)])


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
