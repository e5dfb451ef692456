"""probe/holders/cards: what is free of each card or slice, and who holds the rest."""

from __future__ import annotations

import os
import subprocess
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from tests.probe.fake_nvml import FakeNvml, NoNvml, NvmlError, on

from tfdyno.probe.cards import cards as nvml_cards
from tfdyno.probe.holders import cards
from tfdyno.probe.holders.cards import EXCLUSIVE, Holder, look

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.base.untyped import Value

GIB = 1 << 30
NOBODY = 4194303


class Divided(FakeNvml):
    """Two H100; the second has slices 0 and 2, of which others use the latter.

    Handles of slices are 100 times the card plus their number, as NVML's differ from a card's.
    """

    def __init__(self) -> None:
        super().__init__(count=2)

    def nvmlDeviceGetMigMode(self, handle: int) -> list[int]:  # noqa: N802
        return [int(handle == 1), 0]

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: int) -> int:  # noqa: N802
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: int, number: int) -> int:  # noqa: N802
        if number not in (0, 2):
            raise NvmlError("Not Found")
        return 100 * handle + number

    def nvmlDeviceGetUUID(self, handle: int) -> str:  # noqa: N802
        return f"MIG-{handle}" if handle >= 100 else f"GPU-{handle}a2b"

    def nvmlDeviceGetGpuInstanceId(self, handle: int) -> int:  # noqa: N802
        return 5 + handle % 100

    def nvmlDeviceGetComputeInstanceId(self, handle: int) -> int:  # noqa: N802
        return 0

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Value:  # noqa: N802
        if handle >= 100:
            return SimpleNamespace(total=10 * GIB, used=8 * GIB if handle == 102 else 0)
        return SimpleNamespace(total=80 * GIB, used=9 * GIB)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:  # noqa: N802
        return [SimpleNamespace(pid=NOBODY, usedGpuMemory=None)] if handle in (1, 102) else []


def test_free_memory_and_others_largest_first_without_ourselves() -> None:
    nvml = FakeNvml()
    nvml.processes = [(os.getpid(), GIB), (NOBODY - 1, GIB), (NOBODY, 2 * GIB), (NOBODY - 2, None)]
    (card,) = on(nvml, look).cards
    assert (card.place, card.total_bytes) == ("GPU 0", 85520809984)
    assert card.free_bytes == 85520809984 - 41_000_000_000
    assert card.holders == (
        Holder(pid=NOBODY, memory_bytes=2 * GIB),
        Holder(pid=NOBODY - 1, memory_bytes=GIB),
        Holder(pid=NOBODY - 2),
    )
    assert card.is_shared


def test_processes_that_share_through_mps_count() -> None:
    nvml = FakeNvml()
    running = [SimpleNamespace(pid=NOBODY, usedGpuMemory=GIB)]
    nvml.nvmlDeviceGetMPSComputeRunningProcesses = lambda _handle: running  # type: ignore[attr-defined]
    (card,) = on(nvml, look).cards
    assert card.holders == (Holder(pid=NOBODY, memory_bytes=GIB),)


def test_a_driver_that_tells_no_processes_or_no_memory_is_unknown_not_free() -> None:
    nvml = FakeNvml()
    nvml.unsupported = {"nvmlDeviceGetComputeRunningProcesses"}
    (card,) = on(nvml, look).cards
    assert card.holders is None
    assert card.is_shared  # 41 GB are somebody's
    nvml.unsupported |= {"nvmlDeviceGetMemoryInfo"}
    (card,) = on(nvml, look).cards
    assert (card.free_bytes, card.is_shared) == (None, False)


def test_the_compute_mode_is_told() -> None:
    nvml = FakeNvml()
    nvml.nvmlDeviceGetComputeMode = lambda _handle: EXCLUSIVE  # type: ignore[attr-defined]
    assert [one.mode for one in on(nvml, look).cards] == [EXCLUSIVE]


@pytest.mark.parametrize("visible", ["MIG-102", "MIG-GPU-1a2b/7/0"])
def test_a_slice_that_is_named_is_told_by_itself(visible: str) -> None:
    (card,) = on(Divided(), look, visible).cards
    assert (card.place, card.index) == ("slice 2 of GPU 1", 1)
    assert (card.total_bytes, card.free_bytes) == (10 * GIB, 2 * GIB)
    assert card.holders == (Holder(pid=NOBODY),)


def test_of_a_divided_card_a_run_sees_the_first_slice() -> None:
    whole, slice_ = on(Divided(), look).cards
    assert (whole.place, slice_.place) == ("GPU 0", "slice 0 of GPU 1")
    assert (slice_.free_bytes, slice_.is_shared) == (10 * GIB, False)
    assert on(Divided(), look, "MIG-999").cards == ()


def test_hidden_cards_are_not_asked() -> None:
    nvml = FakeNvml()
    for visible in ("", "-1"):
        assert on(nvml, look, visible).cards == ()
    assert nvml.calls == []


def test_without_a_driver_and_a_card_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "CARD_NODES", ())
    assert on(NoNvml(), look) == cards.CardsInspection()


def test_a_card_whose_nvml_is_mute_is_said_to_be_unknown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cards, "CARD_NODES", (str(tmp_path),))
    assert on(NoNvml(), look).trouble == "NVML Shared Library Not Found"
    monkeypatch.setattr(nvml_cards, "bindings", lambda: None)
    assert look().trouble == "the package nvidia-ml-py is not installed"


@pytest.mark.gpu
def test_on_a_real_card_memory_is_what_nvidia_smi_tells() -> None:
    command = ["nvidia-smi", "-i", "0", "--query-gpu=memory.total,memory.used",
               "--format=csv,noheader,nounits"]  # fmt: skip
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    total, used = (float(cell) * (1 << 20) for cell in told.split(","))
    card = look("0").cards[0]
    assert card.total_bytes == pytest.approx(total, rel=0.02)
    assert card.free_bytes is not None
    assert card.total_bytes - card.free_bytes == pytest.approx(used, abs=0.02 * total)
