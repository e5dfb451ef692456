"""The cards, or the slice of one, that a run would use: what is free, and who holds the rest."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.probe.base.child_nvml import process_name
from tfdyno.probe.cards import cards

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.untyped import Library, Value

PROCESS_LISTS = (
    "nvmlDeviceGetComputeRunningProcesses",
    "nvmlDeviceGetMPSComputeRunningProcesses",
)
"""Those that compute by themselves, and those that share a card through MPS."""
EXCLUSIVE, PROHIBITED = 3, 2
"""``NVML_COMPUTEMODE_EXCLUSIVE_PROCESS`` and ``NVML_COMPUTEMODE_PROHIBITED``."""
NOBODY_RATIO = 0.02
"""Less of a card's memory than this is what the driver itself and a screen hold."""
CARD_NODES = ("/dev/nvidia0", "/dev/dxg")
"""There is a card on Linux, or under WSL, whatever NVML says."""
CARD_FILES = ("/dev/nvidia", "/dev/dxg")
"""What a process has open that computes on a card, on Linux and under WSL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A process that is not ours and computes on a card."""

    pid: int
    name: str = ""
    """Program and script; empty: it cannot be read."""
    user: str = ""
    """Who runs it, where that is somebody else."""
    memory_bytes: int = 0
    """0: the driver does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldCard:
    """A card, or a slice of one, at this moment."""

    place: str
    """``GPU 0``, or ``slice 1 of GPU 0``."""
    index: int
    """The card's number as ``nvidia-smi`` counts."""
    total_bytes: int = 0
    free_bytes: int | None = None
    """None: the driver does not tell."""
    holders: tuple[Holder, ...] | None = ()
    """None: the driver does not tell."""
    mode: int = 0
    """The mode in NVML: ``EXCLUSIVE`` lets one process compute at a time, ``PROHIBITED`` none."""

    @property
    def is_shared(self) -> bool:
        """Whether others use it: by name, or by memory that nobody of ours holds."""
        if self.holders:
            return True
        if self.free_bytes is None:
            return False
        return self.total_bytes - self.free_bytes >= NOBODY_RATIO * self.total_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CardsInspection:
    """The cards that a run may use, or why they are not known though there is one."""

    cards: tuple[HeldCard, ...] = ()
    trouble: str = ""


def look(visible: str | None = None) -> CardsInspection:
    """Ask NVML who holds the cards; nothing is told of a machine without one.

    Args:
        visible: ``CUDA_VISIBLE_DEVICES`` of the run; None: all cards.
    """
    if visible is not None and visible.strip() in ("", "-1", "none", "NoDevFiles"):
        return CardsInspection()
    with cards.opened() as nvml:
        if nvml:
            own = own_family()
            places = list(_places(nvml, visible))
            return CardsInspection(cards=tuple(_held(nvml, *place, own) for place in places))
    return (
        CardsInspection(trouble=_why_mute())
        if any(map(os.path.exists, CARD_NODES))
        else CardsInspection()
    )


def _why_mute() -> str:
    """Return what NVML says where it does not start."""
    library = cards.bindings()
    if library is None:
        return "the package nvidia-ml-py is not installed"
    try:
        library.nvmlInit()
    except Exception as error:  # of any kind: it is told as it is
        return str(error) or type(error).__name__
    return "it did not answer at first"


def _places(nvml: Library, visible: str | None) -> Iterator[tuple[int, str, Any, Any]]:
    """Yield of each card its index, words, handle and the slice's, else its own again.

    A run sees one slice at most: the one that it names, else the first of a divided card.
    """
    wanted = [one.strip() for one in (visible or "").split(",") if one.strip().startswith("MIG-")]
    for index, handle in cards.handles(nvml, visible):
        slices = list(_slices(nvml, handle)) if _is_divided(nvml, handle) else []
        if wanted:
            chosen = [one for one in slices if _names(nvml, wanted[0], handle, one[1])]
        else:
            chosen = slices[:1]
        for number, part in chosen:
            yield index, f"slice {number} of GPU {index}", handle, part
        if not slices and not wanted:
            yield index, f"GPU {index}", handle, handle


def _is_divided(nvml: Library, handle: Library) -> bool:
    mode = cards.ask(nvml, "nvmlDeviceGetMigMode", handle)
    return bool(mode and mode[0])


def _slices(nvml: Library, handle: Library) -> Iterator[tuple[int, Any]]:
    for number in range(cards.ask(nvml, "nvmlDeviceGetMaxMigDeviceCount", handle) or 0):
        part = cards.ask(nvml, "nvmlDeviceGetMigDeviceHandleByIndex", handle, number)
        if part is not None:  # numbers have gaps
            yield number, part


def _names(nvml: Library, wanted: str, handle: Library, part: Value) -> bool:
    """Return whether CUDA's name of a slice, of today or as before driver 470, is of this one."""
    if cards.text(cards.ask(nvml, "nvmlDeviceGetUUID", part)).startswith(wanted):
        return True
    old = wanted.removeprefix("MIG-").split("/")
    asked = ("nvmlDeviceGetGpuInstanceId", "nvmlDeviceGetComputeInstanceId")
    numbers = [str(cards.ask(nvml, call, part)) for call in asked]
    return old == [cards.text(cards.ask(nvml, "nvmlDeviceGetUUID", handle)), *numbers]


def _held(
    nvml: Library,
    index: int,
    place: str,
    handle: Library,
    part: Value,
    own: frozenset[int],
) -> HeldCard:
    memory = cards.ask(nvml, "nvmlDeviceGetMemoryInfo", part)
    total = int(memory.total) if memory else 0
    return HeldCard(
        place=place,
        index=index,
        total_bytes=total,
        free_bytes=max(0, total - int(memory.used)) if total else None,
        holders=_holders(nvml, part, own),
        mode=int(cards.ask(nvml, "nvmlDeviceGetComputeMode", handle) or 0),
    )


def _holders(nvml: Library, part: Value, own: frozenset[int]) -> tuple[Holder, ...] | None:
    lists = [cards.ask(nvml, call, part) for call in PROCESS_LISTS]
    if lists[0] is None:
        return None
    running = {int(one.pid): int(one.usedGpuMemory or 0) for some in lists for one in some or ()}
    found = [
        Holder(pid=pid, name=who.name, user=who.user, memory_bytes=used)
        for pid, used in running.items()
        if pid not in own
        for who in (named(pid),)
    ]
    return tuple(sorted(found, key=lambda one: -one.memory_bytes))


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


def own_family() -> frozenset[int]:
    """List this process and those that have started it: none of them is somebody else."""
    one, family = os.getpid(), set[int]()
    while one > 0 and one not in family:
        family.add(one)
        one = _parent(one)
    return frozenset(family)


def _parent(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
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
