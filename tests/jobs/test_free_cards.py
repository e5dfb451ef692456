"""jobs/_free_cards: a card that others hold is one sentence before the first run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.probe.fake_nvml import FakeNvml, NoNvml

from tfdyno.core.errors import ToolError
from tfdyno.jobs._free_cards import check_room

TOTAL_BYTES = 80 << 30


class Full(FakeNvml):
    """Two cards; of the second all but 3 GiB is held by two processes."""

    def __init__(self) -> None:
        super().__init__(count=2)
        self.processes = [(4711, 40 << 30), (4712, 37 << 30)]

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:  # noqa: ANN401, N802  (as NVIDIA's)
        used = TOTAL_BYTES - (3 << 30) if handle else 1 << 30
        return SimpleNamespace(total=TOTAL_BYTES, used=used)


def test_a_card_with_nearly_nothing_free_is_refused_with_who_holds_it() -> None:
    with pytest.raises(ToolError) as told:
        check_room(None, library=Full())
    assert str(told.value) == (
        "GPU 1 has 3 GiB of 80 GiB of memory free: other processes hold the rest (4711, 4712); "
        "end them, or choose another card with --set visible_devices=N."
    )


def test_only_the_cards_of_the_run_count() -> None:
    check_room("0", library=Full())
    check_room("", library=Full())


def test_a_card_that_others_use_in_part_and_a_machine_without_cards_pass() -> None:
    check_room(None, library=FakeNvml(count=2))
    check_room(None, library=NoNvml())
