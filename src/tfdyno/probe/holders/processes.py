"""The process behind an identifier that NVML names: its program, and whose it is."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tfdyno.probe.base.child_nvml import process_name

CARD_FILES = ("/dev/nvidia", "/dev/dxg")
"""What a process has open that computes on a card, on Linux and under WSL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What is known of a process."""

    name: str = ""
    """Program, and script of a Python; empty: it cannot be read."""
    user: str = ""
    """Who runs it; empty: the user of this process, or unknown."""


def named(pid: int, root: Path = Path("/proc")) -> Named:
    """Return who a process is; nothing where this system does not show it.

    In a container NVML may count processes as the host does. A process that happens to have the
    same number here has no card open and is not taken for it.

    Args:
        pid: As NVML names it.
        root: Of the table of processes.
    """
    name = process_name(pid, str(root))
    if not name or _has_card_open(root / str(pid) / "fd") is False:
        return Named()
    return Named(name=name, user=_other_user(root / str(pid)))


def own_family(pid: int | None = None, root: Path = Path("/proc")) -> frozenset[int]:
    """List this process and those that have started it: none of them is somebody else."""
    one, family = pid or os.getpid(), set[int]()
    while one > 0 and one not in family:
        family.add(one)
        one = _parent(one, root)
    return frozenset(family)


def _parent(pid: int, root: Path) -> int:
    try:
        text = (root / str(pid) / "stat").read_text(errors="replace")
        return int(text.rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _has_card_open(folder: Path) -> bool | None:
    """Return None where another user's files are not shown, or the process has just ended."""
    try:
        files = list(folder.iterdir())
    except OSError:
        return None
    targets = [target for file in files if (target := _target(file))]
    return any(name in target for name in CARD_FILES for target in targets) if targets else None


def _target(link: Path) -> str:
    try:
        return os.readlink(link)  # noqa: PTH115  (a pipe is no path)
    except OSError:
        return ""


def _other_user(folder: Path) -> str:
    import pwd

    try:
        owner = folder.stat().st_uid
        return "" if owner == os.getuid() else pwd.getpwuid(owner).pw_name
    except (OSError, KeyError):
        return ""
