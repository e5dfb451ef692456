"""How memory moves, as a result file has it."""

from __future__ import annotations

import pytest

from tfdyno.core.base.codec import from_builtins, to_builtins
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.interval import Interval
from tfdyno.core.measure.memory_outlook import MemoryOutlook

OUTLOOK = MemoryOutlook(
    where="host", grows=True, bytes_per_step=Interval(low=1.0, best=2.0, high=4.0),
    counted_by="allocator", steps=180, free_bytes=4096,
    full_in_steps=Interval(low=1024.0, best=2048.0, high=4096.0), kind="tensors",
    suspects=("list of 3 tensors held by train.py:3 (losses)",),
)  # fmt: skip


def test_it_survives_being_written_and_read() -> None:
    assert from_builtins(to_builtins(OUTLOOK), MemoryOutlook) == OUTLOOK


@pytest.mark.parametrize("change", [{"counted_by": "guesses"}, {"leaks": True}])
def test_what_nobody_knows_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        from_builtins(to_builtins(OUTLOOK) | change, MemoryOutlook)
