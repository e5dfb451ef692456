"""jobs/holders/room: a card that others hold is refused in one sentence, or waited for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from tests.probe.fake_nvml import FakeNvml, NoNvml, on

from tfdyno.core.base.errors import ToolError
from tfdyno.core.base.interval import Interval
from tfdyno.jobs.holders import room
from tfdyno.jobs.holders.room import check_room, is_free, refuse, wait_for_room
from tfdyno.probe.holders.cards import EXCLUSIVE, PROHIBITED, HeldCard, Holder

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value
    from tfdyno.probe.holders.cards import CardsInspection

GIB = 1 << 30
TOTAL_BYTES = 80 * GIB
OTHER = Holder(pid=4711, name="python other.py", memory_bytes=40 * GIB)


class Full(FakeNvml):
    """Two cards; of the second all but 3 GiB is held by two processes of another container."""

    def __init__(self) -> None:
        super().__init__(count=2)
        self.processes = [(4194301, 40 * GIB), (4194302, 37 * GIB)]

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Value:  # noqa: N802  (as NVIDIA's)
        used = TOTAL_BYTES - 3 * GIB if handle else 1 * GIB
        return SimpleNamespace(total=TOTAL_BYTES, used=used)


class Ending(FakeNvml):
    """A card whose only other process is gone at the third question."""

    def __init__(self) -> None:
        super().__init__()
        self.left = 2

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Value:  # noqa: N802
        return SimpleNamespace(total=TOTAL_BYTES, used=70 * GIB if self.left else GIB)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:  # noqa: N802
        self.left -= 1
        return [SimpleNamespace(pid=4194301, usedGpuMemory=70 * GIB)] if self.left >= 0 else []


def card(free: int | None = 40 * GIB, *holders: Holder, **more: Any) -> HeldCard:
    fields = {"place": "GPU 0", "index": 0, "total_bytes": TOTAL_BYTES, "free_bytes": free}
    return HeldCard(**{**fields, "holders": holders, **more})


def test_a_card_with_nearly_nothing_free_is_refused_with_who_holds_it() -> None:
    with pytest.raises(ToolError) as told:
        on(Full(), check_room, None)
    assert str(told.value) == (
        "GPU 1 has 3 GiB of 80 GiB of memory free: a process of another container or user "
        "(4194301, 40 GiB) and a process of another container or user (4194302, 37 GiB) hold the "
        "rest; end them, wait for them with --wait-free, or choose another card with --set "
        "visible_devices=N."
    )


def test_only_the_cards_of_the_run_count() -> None:
    on(Full(), check_room, "0")
    on(Full(), check_room, "")


def test_a_card_that_others_use_in_part_and_a_machine_without_cards_pass() -> None:
    on(FakeNvml(count=2), check_room, None)
    on(NoNvml(), check_room, None)


def test_a_card_in_exclusive_mode_is_refused_only_where_somebody_is_on_it() -> None:
    refuse([card(70 * GIB, mode=EXCLUSIVE)])
    with pytest.raises(ToolError, match=r"exclusive mode, and python other.py \(4711, 40 GiB\)"):
        refuse([card(40 * GIB, OTHER, mode=EXCLUSIVE)])
    with pytest.raises(ToolError, match="prohibited; set it with: nvidia-smi -i 0 -c 0"):
        refuse([card(70 * GIB, mode=PROHIBITED)])


def test_a_card_is_free_when_nobody_is_there_or_the_need_fits_beside_them() -> None:
    need = Interval(low=10 * GIB, best=20 * GIB, high=30 * GIB)
    assert is_free([card(79 * GIB)], None)
    assert not is_free([card(40 * GIB, OTHER)], None)
    assert is_free([card(40 * GIB, OTHER)], need)
    assert not is_free([card(29 * GIB, OTHER)], need)  # it may take 30
    assert not is_free([card(70 * GIB, OTHER, mode=EXCLUSIVE)], need)
    assert not is_free([card(70 * GIB)], None)  # held by whom the driver does not show
    assert is_free([card(None, holders=None)], None)  # nothing is told at all


def test_waiting_ends_when_the_other_process_does_and_tells_once_for_whom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    told: list[str] = []
    found: CardsInspection = on(Ending(), wait_for_room, None, progress=told.append)
    assert [one.is_shared for one in found.cards] == [False]
    assert pauses == [room.WAIT_STEP_S] * 2
    assert told == [
        "waiting: GPU 0 has 10 GiB of 80 GiB of memory free: a process of another container or "
        "user (4194301, 70 GiB) holds the rest"
    ]


def test_a_free_card_is_not_waited_for_and_its_need_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("time.sleep", lambda _s: pytest.fail("it waited"))
    nobody = Ending()
    nobody.left = 0
    on(nobody, wait_for_room, None, need=lambda: pytest.fail("asked"), progress=pytest.fail)
