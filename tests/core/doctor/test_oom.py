"""What a report of exhausted memory says of its cause, worked out from its numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.doctor.oom import ChunkSize, OomReport

AMOUNT = st.integers(0, 1 << 40)


def test_chunks_of_one_size_add_up() -> None:
    assert ChunkSize(size_bytes=256, count=12).total_bytes == 3072


@pytest.mark.parametrize(
    ("in_use", "requested", "pool", "limit", "fragmented", "refused"),
    [
        (6, 3, 10, 16, True, True),  # 4 free in the pool, in pieces; the device had no 3 more
        (6, 3, 10, 10, True, False),  # the limit itself was reached
        (9, 3, 10, 16, False, True),  # 1 free in the pool, 6 allowed and not given
        (9, 8, 10, 16, False, False),  # more than is allowed
        (6, 3, 0, 16, True, False),  # the pool is not told: the limit stands for it
        (0, 3, 10, 16, False, True),  # nothing in use: not fragments
        (6, 0, 10, 16, False, False),  # nothing is known of the request
    ],
)
def test_fragments_and_a_refusing_device_are_told_apart(
    in_use: int, requested: int, pool: int, limit: int, fragmented: bool, refused: bool
) -> None:
    report = OomReport(
        in_use_bytes=in_use, requested_bytes=requested, pool_bytes=pool, limit_bytes=limit
    )
    assert report.is_fragmented is fragmented
    assert report.is_refused_by_device is refused


@given(AMOUNT, AMOUNT, AMOUNT, AMOUNT)
def test_a_larger_request_is_never_fragmentation_where_a_smaller_one_is_not(
    in_use: int, requested: int, pool: int, more: int
) -> None:
    small = OomReport(in_use_bytes=in_use, requested_bytes=requested + 1, pool_bytes=pool)
    large = OomReport(in_use_bytes=in_use, requested_bytes=requested + 1 + more, pool_bytes=pool)
    assert small.is_fragmented >= large.is_fragmented
