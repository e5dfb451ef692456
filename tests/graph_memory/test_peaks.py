"""The peaks of a step, worked by hand."""

from __future__ import annotations

from graph_memory.events import Event, Tensor
from graph_memory.peaks import peaks


def tensor(start: int, end: int | None, size: int, address: int, chunk: int = 0) -> Tensor:
    allocated = Event(
        at_ps=start,
        freed=False,
        address=address,
        requested_bytes=size,
        chunk_bytes=chunk or size,
        operation="",
        region="",
        shape="",
    )
    return Tensor(allocated=allocated, released_ps=end)


HELD = [
    tensor(0, None, 1000, 0),  # a variable
    tensor(1, 5, 500, 2000),  # gone before the step
    tensor(11, 14, 300, 2000, chunk=512),
    tensor(12, 13, 100, 4000),  # scratch
    tensor(14, 15, 350, 2000, chunk=512),  # takes the place of the one before
    tensor(25, 30, 9000, 9000),  # after the step
]
SCRATCH = [False, False, False, True, False, False]


def test_every_peak_is_the_highest_of_its_own_kind() -> None:
    found = peaks(HELD, SCRATCH, 10, 20)
    assert found.resident_bytes == 1000
    assert found.tensor_peak_bytes == 1350
    assert found.requested_peak_bytes == 1400
    assert found.rounded_peak_bytes == 1024 + 512 + 256
    assert found.in_use_peak_bytes == 1000 + 512 + 100
    assert found.footprint_bytes == 1000 + 512 + 100


def test_what_is_released_at_a_moment_makes_room_first() -> None:
    found = peaks([tensor(11, 12, 100, 0), tensor(12, 13, 100, 0)], [False] * 2, 10, 20)
    assert found.tensor_peak_bytes == 100
