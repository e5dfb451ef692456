"""Cards through NVML: what stays as it is, and what changes from moment to moment.

NVML's Python bindings are nvidia-ml-py (``pynvml``). Nothing here raises: what a driver, a card
or a permission does not tell is None.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfdyno.core.measure.measurement import Card
from tfdyno.probe.base.child_nvml import THROTTLE, UNCORRECTED, VOLATILE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfdyno.core.base.untyped import Library, Value

PERCENT = 100.0
WATT_MW = 1000.0
MHZ_HZ = 1e6
CORRECTED = 0
"""``NVML_MEMORY_ERROR_TYPE_CORRECTED``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One card at one moment; None: it does not tell."""

    utilisation_ratio: float | None = None
    """Share of the last sampling period of the driver in which a kernel ran."""
    memory_bytes: int | None = None
    processes: tuple[tuple[int, int], ...] | None = None
    """Identifier and memory in bytes of the processes that compute on it."""
    power_w: float | None = None
    temperature_celsius: float | None = None
    graphics_clock_hz: float | None = None
    memory_clock_hz: float | None = None
    throttle: tuple[str, ...] | None = None
    """What holds its clocks down; empty: nothing."""
    corrected_errors: int | None = None
    """Errors of its memory that ECC corrected since the driver was loaded."""
    uncorrected_errors: int | None = None
    """Likewise, that it could not correct."""


@contextlib.contextmanager
def opened() -> Iterator[Any]:
    """Open NVML while the block runs; None on a machine without it."""
    library = bindings()
    try:
        library.nvmlInit()
    except Exception:  # no bindings, no library, no driver, no permission
        yield None
        return
    try:
        yield library
    finally:
        ask(library, "nvmlShutdown")


def bindings() -> Value:
    """Return the package ``pynvml``; None where it is not installed."""
    try:
        import pynvml
    except ImportError:
        return None
    return pynvml


def ask(library: Library, call: str, *arguments: Any) -> Value:
    """Return the answer of one call of NVML; None where it fails or the driver lacks it."""
    try:
        return getattr(library, call)(*arguments)
    except Exception:  # an NVMLError of any kind; a name that the bindings lack
        return None


def handles(library: Library, visible: str | None = None) -> tuple[tuple[int, Any], ...]:
    """Index and handle of every card that a process may use, in the order in which it counts them.

    Args:
        library: An opened NVML; None: no cards.
        visible: Its ``CUDA_VISIBLE_DEVICES``; None where that is not set. Numbers are taken for
            NVML's own, which they are wherever the cards are of one kind.
    """
    found = []
    for index in range(ask(library, "nvmlDeviceGetCount") or 0):
        handle = ask(library, "nvmlDeviceGetHandleByIndex", index)
        identity = text(ask(library, "nvmlDeviceGetUUID", handle))
        place = _place(index, identity, visible)
        if handle is not None and place is not None:
            found.append((place, index, handle))
    return tuple((index, handle) for _, index, handle in sorted(found))


def card(library: Library, handle: Library, slug_of: Callable[[str], str]) -> Card:
    """Return a card's facts; ``slug_of`` gives the catalogue's row for its name, or nothing."""
    name = text(ask(library, "nvmlDeviceGetName", handle))
    memory = ask(library, "nvmlDeviceGetMemoryInfo", handle)
    graphics = getattr(library, "NVML_CLOCK_GRAPHICS", 0)
    return Card(
        name=name,
        slug=slug_of(name) if name else "",
        memory_bytes=int(memory.total) if memory else 0,
        power_limit_w=(ask(library, "nvmlDeviceGetEnforcedPowerLimit", handle) or 0) / WATT_MW,
        graphics_clock_limit_hz=MHZ_HZ
        * (ask(library, "nvmlDeviceGetMaxClockInfo", handle, graphics) or 0),
        ecc=_is_on(ask(library, "nvmlDeviceGetEccMode", handle)),
        mig=_is_on(ask(library, "nvmlDeviceGetMigMode", handle)),
    )


def reading(library: Library, handle: Library) -> Reading:
    """Return what a card tells now."""
    load = ask(library, "nvmlDeviceGetUtilizationRates", handle)
    memory = ask(library, "nvmlDeviceGetMemoryInfo", handle)
    reasons = ask(library, "nvmlDeviceGetCurrentClocksThrottleReasons", handle)
    heat = ask(library, "nvmlDeviceGetTemperature", handle, 0)
    running = ask(library, "nvmlDeviceGetComputeRunningProcesses", handle)
    return Reading(
        utilisation_ratio=None if load is None else load.gpu / PERCENT,
        memory_bytes=None if memory is None else int(memory.used),
        processes=None
        if running is None
        else tuple((int(one.pid), int(one.usedGpuMemory or 0)) for one in running),
        power_w=_scaled(ask(library, "nvmlDeviceGetPowerUsage", handle), 1 / WATT_MW),
        temperature_celsius=_scaled(heat, 1.0),
        graphics_clock_hz=_clock(library, handle, "NVML_CLOCK_GRAPHICS", 0),
        memory_clock_hz=_clock(library, handle, "NVML_CLOCK_MEM", 2),
        throttle=None
        if reasons is None
        else tuple(words for bit, words in THROTTLE.items() if reasons & bit),
        corrected_errors=_errors(library, handle, CORRECTED),
        uncorrected_errors=_errors(library, handle, UNCORRECTED),
    )


def text(answer: object) -> str:
    """Return a name that older bindings give as bytes; empty for None."""
    if isinstance(answer, bytes):
        return answer.decode(errors="replace")
    return str(answer or "")


def _clock(library: Library, handle: Library, kind: str, number: int) -> float | None:
    kind_number = getattr(library, kind, number)
    return _scaled(ask(library, "nvmlDeviceGetClockInfo", handle, kind_number), MHZ_HZ)


def _errors(library: Library, handle: Library, kind: int) -> int | None:
    found = ask(library, "nvmlDeviceGetTotalEccErrors", handle, kind, VOLATILE)
    return None if found is None else int(found)


def _scaled(answer: float | None, factor: float) -> float | None:
    return None if answer is None else answer * factor


def _is_on(modes: Value) -> bool | None:
    """Return whether a mode is in the first of its states, now and after a restart, or None."""
    return None if modes is None else bool(modes[0])


def _place(index: int, identity: str, visible: str | None) -> int | None:
    """Return the number that a card has for the process; None: it is hidden from it.

    CUDA reads the list up to the first entry that it does not know.
    """
    if visible is None:
        return index
    for place, entry in enumerate(one.strip() for one in visible.split(",")):
        if not entry.isdecimal() and not entry.startswith(("GPU-", "MIG-")):
            return None
        if entry.startswith("MIG-") or entry == str(index):
            return place
        if entry.startswith("GPU-") and identity.startswith(entry):
            return place
    return None
