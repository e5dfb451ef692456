"""The card that is measured: what it is, who else uses it, and its power and clocks meanwhile.

Read through NVML where ``pynvml`` is installed, else by ``nvidia-smi``, which every driver brings.
"""

from __future__ import annotations

import contextlib
import shutil
import statistics
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Value

SMI_FIELDS = (
    "name", "uuid", "driver_version", "memory.total", "memory.used", "utilization.gpu",
    "power.limit", "compute_cap", "mig.mode.current",
)  # fmt: skip
SMI_METER = ("power.draw", "clocks.sm", "clocks.mem")
SMI_PERIOD_MS = 100
ANSWER_S = 20.0
"""A driver that hangs answers never; one that wakes a card takes some seconds."""
MIB = 1 << 20
QUIET_BYTES = 1536 * MIB
"""What a desktop and the driver hold of a card that nobody computes on."""
QUIET_LOAD = 15
"""Percent of the time that a desktop keeps a card busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A process that computes on the card."""

    pid: int
    name: str
    held_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One card, as the driver tells of it; what it does not tell is None."""

    index: str
    name: str
    uuid: str
    driver: str
    memory_total_bytes: int | None
    memory_used_bytes: int | None
    load_percent: int | None
    power_limit_w: float | None
    compute_capability: str | None
    divided: bool
    """By MIG: what is measured then is a slice."""
    tenants: tuple[Tenant, ...]

    @property
    def capability(self) -> tuple[int, int] | None:
        """The compute capability as numbers."""
        major, _, minor = (self.compute_capability or "").partition(".")
        return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else None

    @property
    def free_bytes(self) -> int | None:
        """What nobody holds of its memory."""
        if self.memory_total_bytes is None or self.memory_used_bytes is None:
            return None
        return self.memory_total_bytes - self.memory_used_bytes

    @property
    def in_use(self) -> str:
        """By whom the card is used, in words; empty where nobody does."""
        if self.tenants:
            return "; ".join(
                f"{one.name} (process {one.pid}"
                + (f", {one.held_bytes / MIB:,.0f} MiB" if one.held_bytes else "")
                + ")"
                for one in self.tenants
            )
        if (self.load_percent or 0) > QUIET_LOAD:
            return f"somebody unseen (it is {self.load_percent} % busy)"
        if (self.memory_used_bytes or 0) > QUIET_BYTES:
            held_mib = (self.memory_used_bytes or 0) / MIB
            return f"somebody unseen ({held_mib:,.0f} MiB of its memory are held)"
        return ""

    @property
    def fields(self) -> dict[str, object]:
        """What every row says about the card."""
        told = {
            "gpu": self.name,
            "driver": self.driver,
            "compute_capability": self.compute_capability,
            "memory_total_bytes": self.memory_total_bytes,
            "power_limit_w": self.power_limit_w,
        }
        return {name: value for name, value in told.items() if value is not None}


def find_card(index: str) -> Card | None:
    """The card of this index or UUID; None where the driver tells of none."""
    return _card_of_nvml(index) or _card_of_smi(index)


class Meter(Protocol):
    """Power and clocks of a card while a step is repeated."""

    def sample(self) -> None:
        """Look now, while the card computes."""

    def figures(self) -> dict[str, object]:
        """The medians so far, and the memory that the card and this process hold."""


class NoMeter:
    """Of a machine without a card."""

    def sample(self) -> None:
        """Look at nothing."""

    def figures(self) -> dict[str, object]:
        """Tell nothing."""
        return {}


class NvmlMeter:
    """Asks the driver's library, which takes well below a millisecond."""

    def __init__(self, uuid: str, pid: int) -> None:
        nvml, self._handle = _nvml(uuid)
        self._nvml, self._pid = nvml, pid
        self._seen: dict[str, list[float]] = {}

    def sample(self) -> None:
        """Look now."""
        nvml, handle = self._nvml, self._handle
        seen: list[tuple[str, Callable[..., float], tuple[int, ...], float]] = [
            ("power_w", nvml.nvmlDeviceGetPowerUsage, (), 1e-3),
            ("sm_mhz", nvml.nvmlDeviceGetClockInfo, (nvml.NVML_CLOCK_SM,), 1.0),
            ("memory_mhz", nvml.nvmlDeviceGetClockInfo, (nvml.NVML_CLOCK_MEM,), 1.0),
        ]
        for name, ask, words, unit in seen:
            with contextlib.suppress(nvml.NVMLError):  # not every card tells all
                value = round(ask(handle, *words) * unit, 3)
                self._seen.setdefault(name, []).append(value)

    def figures(self) -> dict[str, object]:
        """The medians, and the memory held."""
        told: dict[str, object] = {n: statistics.median(seen) for n, seen in self._seen.items()}
        with contextlib.suppress(self._nvml.NVMLError):
            told["used_bytes"] = int(self._nvml.nvmlDeviceGetMemoryInfo(self._handle).used)
        with contextlib.suppress(self._nvml.NVMLError):
            for one in self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle):
                if one.pid == self._pid and one.usedGpuMemory:
                    told["process_bytes"] = int(one.usedGpuMemory)
        return told


class SmiMeter:
    """Lets ``nvidia-smi`` look ten times a second, apart from the measuring process."""

    def __init__(self, uuid: str, pid: int) -> None:
        self._uuid, self._pid = uuid, pid
        self._watch: subprocess.Popen[str] | None = None

    def sample(self) -> None:
        """Start looking, if that is not done."""
        if self._watch is None:
            self._watch = subprocess.Popen(
                [
                    "nvidia-smi", "-i", self._uuid, "-lms", str(SMI_PERIOD_MS),
                    f"--query-gpu={','.join(SMI_METER)}", "--format=csv,noheader,nounits",
                ],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            )  # fmt: skip

    def figures(self) -> dict[str, object]:
        """The medians, and the memory held."""
        told: dict[str, object] = {}
        if self._watch is not None:
            self._watch.terminate()
            # The last line may be cut off anywhere, in the midst of a number too.
            lines = self._watch.communicate()[0].rpartition("\n")[0].splitlines()
            columns = zip(*(_cells(line, len(SMI_METER)) for line in lines), strict=True)
            for name, column in zip(("power_w", "sm_mhz", "memory_mhz"), columns, strict=False):
                seen = [number for cell in column if (number := _number(cell)) is not None]
                if seen:
                    told[name] = statistics.median(seen)
        card = _card_of_smi(self._uuid)
        if card is not None and card.memory_used_bytes is not None:
            told["used_bytes"] = card.memory_used_bytes
            for one in card.tenants:
                if one.pid == self._pid and one.held_bytes:
                    told["process_bytes"] = one.held_bytes
        return told


def meter_of(uuid: str | None, pid: int) -> Meter:
    """What looks at the card of this UUID while the process measures."""
    if uuid is None:
        return NoMeter()
    try:
        return NvmlMeter(uuid, pid)
    except Exception:  # no pynvml, or no library of the driver
        return SmiMeter(uuid, pid) if shutil.which("nvidia-smi") else NoMeter()


def _nvml(index: str) -> tuple[Any, Any]:
    import pynvml

    pynvml.nvmlInit()
    if index.isdigit():
        return pynvml, pynvml.nvmlDeviceGetHandleByIndex(int(index))
    return pynvml, pynvml.nvmlDeviceGetHandleByUUID(index)


def _card_of_nvml(index: str) -> Card | None:
    try:
        nvml, handle = _nvml(index)
    except Exception:  # no pynvml, no driver, no such card: nvidia-smi is asked next
        return None

    def ask(function: str, *words: object) -> Value:
        try:
            return getattr(nvml, function)(*(words or (handle,)))
        except nvml.NVMLError:
            return None

    memory, load = ask("nvmlDeviceGetMemoryInfo"), ask("nvmlDeviceGetUtilizationRates")
    limit_mw, mig = ask("nvmlDeviceGetEnforcedPowerLimit"), ask("nvmlDeviceGetMigMode")
    capability = ask("nvmlDeviceGetCudaComputeCapability")
    return Card(
        index=index,
        name=_text(ask("nvmlDeviceGetName")),
        uuid=_text(ask("nvmlDeviceGetUUID")),
        driver=_text(nvml.nvmlSystemGetDriverVersion()),
        memory_total_bytes=None if memory is None else int(memory.total),
        memory_used_bytes=None if memory is None else int(memory.used),
        load_percent=None if load is None else int(load.gpu),
        power_limit_w=None if limit_mw is None else limit_mw / 1e3,
        compute_capability=None if capability is None else "{}.{}".format(*capability),
        divided=mig is not None and mig[0] == nvml.NVML_DEVICE_MIG_ENABLE,
        tenants=tuple(
            Tenant(
                pid=one.pid,
                name=_text(ask("nvmlSystemGetProcessName", one.pid) or "unknown"),
                held_bytes=one.usedGpuMemory,
            )
            for one in ask("nvmlDeviceGetComputeRunningProcesses") or ()
        ),
    )


def _text(told: object) -> str:
    return told.decode() if isinstance(told, bytes) else str(told)


def _card_of_smi(index: str) -> Card | None:
    lines = _smi(index, "--query-gpu=" + ",".join(SMI_FIELDS))
    if not lines:
        return None
    cells = _cells(lines[0], len(SMI_FIELDS))
    name, uuid, driver, total, used, load, limit, capability, mig = cells
    busy = _number(load)
    return Card(
        index=index,
        name=name,
        uuid=uuid,
        driver=driver,
        memory_total_bytes=_mib(total),
        memory_used_bytes=_mib(used),
        load_percent=None if busy is None else int(busy),
        power_limit_w=_number(limit),
        compute_capability=capability if _number(capability) is not None else None,
        divided=mig == "Enabled",
        tenants=tuple(
            Tenant(pid=int(pid), name=process, held_bytes=_mib(held))
            for pid, process, held in (
                _cells(line, 3)
                for line in _smi(index, "--query-compute-apps=pid,process_name,used_memory")
            )
            if pid.isdigit()
        ),
    )


def _smi(index: str, request: str) -> list[str]:
    """What nvidia-smi answers; nothing where it is missing, fails or hangs."""
    try:
        done = subprocess.run(
            ["nvidia-smi", "-i", index, request, "--format=csv,noheader,nounits"],
            capture_output=True, text=True, timeout=ANSWER_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.strip().splitlines() if done.returncode == 0 else []


def _cells(line: str, count: int) -> list[str]:
    """The cells of a line; one that was cut off gives empty ones."""
    cells = [cell.strip() for cell in line.split(",")]
    return (cells + [""] * count)[:count]


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:  # "[N/A]", "[Not Supported]"
        return None


def _mib(cell: str) -> int | None:
    number = _number(cell)
    return None if number is None else int(number) * MIB
