"""NVML in the shape of ``pynvml``, with the answers of one H100 in the middle of a training run."""

# The names are NVIDIA's, and what the bindings return has no type.
# ruff: noqa: N802, ANN401

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


class NvmlError(Exception):
    """What ``pynvml`` raises."""


class FakeNvml:
    """A machine with ``count`` cards; ``lost`` cards and calls in ``unsupported`` fail."""

    NVML_CLOCK_GRAPHICS = 0
    NVML_CLOCK_MEM = 2

    def __init__(self, count: int = 1) -> None:
        self.count = count
        self.lost: set[int] = set()
        self.unsupported: set[str] = set()
        self.processes: list[tuple[int, int | None]] = []
        self.reasons = 0x4
        self.errors = {0: 0, 1: 0}
        self.calls: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("nvml"):
            self.calls.append(name)
            if name in self.unsupported:
                raise NvmlError("Not Supported")
        return object.__getattribute__(self, name)

    def _card(self, handle: int) -> None:
        if handle in self.lost:
            raise NvmlError("GPU is lost")

    def nvmlInit(self) -> None:
        pass

    def nvmlShutdown(self) -> None:
        pass

    def nvmlDeviceGetCount(self) -> int:
        return self.count

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        self._card(index)
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> str:
        return f"GPU-{handle}a2b"

    def nvmlSystemGetDriverVersion(self) -> bytes:
        return b"550.54.14"

    def nvmlDeviceGetName(self, handle: int) -> bytes:
        return b"NVIDIA H100 80GB HBM3"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        self._card(handle)
        return SimpleNamespace(total=85520809984, used=41_000_000_000)

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:
        self._card(handle)
        return SimpleNamespace(gpu=97, memory=41)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:
        self._card(handle)
        return [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in self.processes]

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:
        self._card(handle)
        return 612_345

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: int) -> int:
        return 700_000

    def nvmlDeviceGetTemperature(self, handle: int, sensor: int) -> int:
        self._card(handle)
        return 71

    def nvmlDeviceGetClockInfo(self, handle: int, kind: int) -> int:
        self._card(handle)
        return {0: 1755, 2: 2619}[kind]

    def nvmlDeviceGetMaxClockInfo(self, handle: int, kind: int) -> int:
        return 1980

    def nvmlDeviceGetEccMode(self, handle: int) -> list[int]:
        return [1, 1]

    def nvmlDeviceGetTotalEccErrors(self, handle: int, kind: int, counter: int) -> int:
        assert counter == 0, "since the driver was loaded"
        self._card(handle)
        return self.errors[kind]

    def nvmlDeviceGetMigMode(self, handle: int) -> list[int]:
        return [0, 0]

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: int) -> int:
        self._card(handle)
        return self.reasons


class NoNvml(FakeNvml):
    """A machine without NVIDIA's library."""

    def nvmlInit(self) -> None:
        raise NvmlError("NVML Shared Library Not Found")


@contextlib.contextmanager
def nvml_is(library: object) -> Iterator[None]:
    """Let the machine have this NVML while the block runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tfdyno.probe.cards.cards.bindings", lambda: library)
        yield


def on(
    library: object, call: Callable[Given, Answer], *args: Given.args, **named: Given.kwargs
) -> Answer:
    """Call something on a machine with this NVML."""
    with nvml_is(library):
        return call(*args, **named)
