"""How often the kernel has killed for lack of memory, which tells that from any other SIGKILL."""

from __future__ import annotations

import signal
from pathlib import Path

VMSTAT = Path("/proc/vmstat")
"""Its counter ``oom_kill`` is that of the whole machine, also in a container (Linux 4.13)."""
NOT_COUNTED = -1
SIGKILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)
"""Exit codes of a process, and of a shell whose process it was."""


def oom_kills(vmstat: Path = VMSTAT) -> int:
    """Return processes that the kernel has killed for lack of memory since the machine was started.

    Returns:
        ``NOT_COUNTED`` where it does not say.
    """
    try:
        lines = vmstat.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return NOT_COUNTED
    found = (line.split()[1] for line in lines if line.startswith("oom_kill "))
    count = next(found, "")
    return int(count) if count.isdecimal() else NOT_COUNTED


def why_killed(before: int, now: int) -> tuple[str, str]:
    """Return why a process was ended by SIGKILL, as far as it is known, and what to do.

    Args:
        before: ``oom_kills`` when it was started.
        now: And when it had ended.
    """
    if NOT_COUNTED in (before, now):
        why = "it was killed by SIGKILL (often: out of memory; the kernel's log says)"
        return why, "look into it with dmesg, or for who ended it"
    if now > before:
        why = (
            "it was killed by SIGKILL, and meanwhile the kernel killed a process of this machine "
            "because memory ran out"
        )
        return why, "close other programs or use a larger machine"
    why = "it was killed by SIGKILL; the kernel counted no kill for lack of memory meanwhile"
    return why, "look for who ended it: a scheduler, a limit, or a person"
