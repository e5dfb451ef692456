"""jobs/_found_cards: what is free of each card, who holds the rest, and which cards are alike."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from tests.probe.fake_nvml import FakeNvml, NoNvml, on

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.jobs.holders.found_cards import count_cards, equal_cards, found_cards, with_room

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value

NAMES = ("NVIDIA H100 80GB HBM3", "NVIDIA L4", "NVIDIA L4", "NVIDIA L4")
TOTALS = (80 << 30, 24 << 30, 24 << 30, 24 << 30)


class Mixed(FakeNvml):
    """An H100 that is full, and three L4: free, a screen on it, and shared with process 7."""

    held = (79 << 30, 0, 300 << 20, 10 << 30)

    def __init__(self) -> None:
        super().__init__(count=4)
        self.names = list(NAMES)
        self.divided = False

    def nvmlDeviceGetName(self, handle: int) -> bytes:  # noqa: N802  (as NVIDIA's)
        return self.names[handle].encode()

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Value:  # noqa: N802
        return SimpleNamespace(total=TOTALS[handle], used=self.held[handle])

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:  # noqa: N802
        pids = {0: [4711], 3: [7]}.get(handle, [])
        return [SimpleNamespace(pid=pid, usedGpuMemory=self.held[handle]) for pid in pids]

    def nvmlDeviceGetMigMode(self, handle: int) -> list[int]:  # noqa: N802
        return [int(self.divided and handle == 0), 0]


def test_cards_are_those_of_the_catalogue_with_what_is_free_now() -> None:
    found = on(Mixed(), found_cards, visible="0,1,2,3")
    assert [one.gpu.slug for one in found] == ["h100-sxm5-80gb", "l4", "l4", "l4"]
    assert [one.held_bytes for one in found] == [79 << 30, 0, 0, 10 << 30]  # a screen is nobody
    assert found[3].gpu.usable_memory_bytes == 14 << 30
    assert found[1].gpu.usable_memory_bytes == found[2].gpu.usable_memory_bytes > 20 << 30
    assert found[3].processes == (7,)


def test_only_visible_cards_are_found_and_none_without_a_driver() -> None:
    assert [one.index for one in on(Mixed(), found_cards, visible="2,3")] == [2, 3]
    assert on(Mixed(), found_cards, visible="-1") == ()
    assert on(NoNvml(), found_cards, visible="0") == ()


def test_the_variable_of_this_process_decides_where_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert [one.index for one in on(Mixed(), found_cards)] == [1]


def test_a_full_card_is_left_out_and_equal_ones_stay() -> None:
    found = on(Mixed(), found_cards, visible="0,1,2,3")
    assert [one.index for one in with_room(found)] == [1, 2, 3]
    assert [one.index for one in equal_cards(with_room(found))] == [1, 2, 3]


def test_the_kind_with_the_most_memory_together_is_taken() -> None:
    nvml = Mixed()
    nvml.held = (0, 0, 0, 0)
    found = on(nvml, found_cards, visible="0,1,2,3")
    assert [one.index for one in equal_cards(found)] == [0]


def test_where_all_are_full_it_is_said_who_holds_them() -> None:
    nvml = Mixed()
    full = on(nvml, found_cards, visible="0")
    with pytest.raises(ToolError, match=r"GPU 0 has 1 GiB of 80 GiB of memory free: .*4711"):
        on(nvml, with_room, full, visible="0")
    assert with_room(()) == ()


def test_a_divided_or_unknown_card_has_to_be_named() -> None:
    nvml = Mixed()
    nvml.divided = True
    with pytest.raises(UsageError, match=r"GPU 0 .* is divided into slices.*--gpu, as h100-sxm5"):
        on(nvml, found_cards, visible="0")
    nvml.names[1] = "NVIDIA X9000 Ultra"
    with pytest.raises(UsageError, match=r"the catalogue has no NVIDIA X9000 Ultra.*--gpu"):
        on(nvml, found_cards, visible="1")


def test_cards_are_counted_whatever_they_are() -> None:
    """One that the catalogue does not have, or that is divided, is there all the same."""
    mixed = Mixed()
    mixed.names[1], mixed.divided = "NVIDIA Unheard 9000", True
    assert on(mixed, count_cards, visible="0,1,2") == 3
    assert on(mixed, count_cards, visible="-1") == 0
    assert on(NoNvml(), count_cards) == 0
