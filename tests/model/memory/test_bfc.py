"""The allocator's rules on requests worked by hand, and its invariants on any requests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.model.memory.bfc import ALIGNMENT_BYTES, LARGEST_WASTE_BYTES, Replay, Request, replay

MIB = 1 << 20


def requests(*wanted: tuple[int, int | None]) -> list[Request]:
    return [Request(buffer=buffer, bytes=size) for buffer, size in wanted]


def test_requests_are_rounded_up_to_256_bytes() -> None:
    done = replay(requests((0, 1), (1, 257)))
    assert done == Replay(
        requested_peak_bytes=258, in_use_peak_bytes=256 + 512, footprint_bytes=768
    )


def test_released_memory_is_used_again() -> None:
    done = replay(requests((0, 1024), (0, None), (1, 1024)))
    assert done.footprint_bytes == 1024


def test_released_neighbours_become_one_chunk() -> None:
    split = [(0, 1024), (1, 1024), (2, 256), (0, None), (1, None), (3, 2048)]
    assert replay(requests(*split)).footprint_bytes == 2048 + 256


def test_a_hole_that_is_too_small_stays_a_hole() -> None:
    apart = [(0, 1024), (1, 256), (2, 1024), (3, 256), (0, None), (2, None), (4, 2048)]
    done = replay(requests(*apart))
    assert done.requested_peak_bytes == 2 * 1024 + 2 * 256
    assert done.footprint_bytes == 2 * (1024 + 256) + 2048


def test_a_chunk_less_than_twice_as_large_is_handed_out_whole() -> None:
    done = replay(requests((0, 1024), (1, 256), (0, None), (2, 768)))
    assert done.requested_peak_bytes == 1024 + 256
    assert done.in_use_peak_bytes == 1024 + 256  # the 768 bytes have the chunk of 1024


def test_a_chunk_twice_as_large_is_divided() -> None:
    done = replay(requests((0, 1024), (1, 256), (0, None), (2, 512), (3, 512)))
    assert done.footprint_bytes == 1024 + 256


def test_a_large_chunk_wastes_no_more_than_128_mib() -> None:
    large = 3 * LARGEST_WASTE_BYTES
    wanted = [(0, large), (1, 256), (0, None), (2, 2 * LARGEST_WASTE_BYTES)]
    done = replay(requests(*wanted, (3, LARGEST_WASTE_BYTES)))
    assert done.footprint_bytes == large + 256


def test_the_smallest_chunk_that_fits_is_taken() -> None:
    holes = [(0, 4096), (1, 256), (2, 1280), (3, 256), (0, None), (2, None), (4, 1024)]
    done = replay(requests(*holes, (5, 4096)))
    assert done.footprint_bytes == 4096 + 256 + 1280 + 256


def test_regions_of_a_growing_allocator_are_no_neighbours() -> None:
    # 2 MiB come first, then 4 MiB: 3 MiB do not fit beside 1 MiB, though 1 MiB is free
    wanted = requests((0, MIB), (1, 3 * MIB), (0, None), (2, 2 * MIB))
    assert replay(wanted, growth=True).failed_bytes == 0
    limited = replay(wanted[:2], growth=True, limit_bytes=4 * MIB)
    assert limited.failed_bytes == 3 * MIB


def test_the_request_that_finds_no_room_is_named() -> None:
    done = replay(requests((0, 3 * MIB), (1, 2 * MIB)), limit_bytes=4 * MIB)
    assert done.failed_bytes == 2 * MIB
    assert done.requested_peak_bytes == 3 * MIB


def test_what_is_free_at_a_failure_is_told_with_its_largest_piece() -> None:
    # 4 MiB: 1 + 1 + 1 + 1; the first and third are given back, so 2 are free in pieces of 1
    held = [(0, MIB), (1, MIB), (2, MIB), (3, MIB), (0, None), (2, None)]
    done = replay(requests(*held, (4, 2 * MIB)), limit_bytes=4 * MIB)
    assert done.failed_bytes == 2 * MIB
    assert (done.free_bytes, done.largest_free_bytes) == (2 * MIB, MIB)
    joined = [(0, MIB), (1, MIB), (2, MIB), (3, MIB), (0, None), (1, None)]
    assert replay(requests(*joined, (4, 2 * MIB)), limit_bytes=4 * MIB).failed_bytes == 0


def test_too_little_in_all_is_no_fragmentation() -> None:
    held = [(0, MIB), (1, MIB), (2, MIB)]
    done = replay(requests(*held, (3, 2 * MIB)), limit_bytes=4 * MIB)
    assert (done.free_bytes, done.largest_free_bytes) == (MIB, MIB)


def test_what_is_free_when_most_is_in_use_is_told_where_nothing_fails() -> None:
    done = replay(requests((0, MIB), (1, MIB), (0, None)), limit_bytes=4 * MIB)
    assert (done.failed_bytes, done.free_bytes, done.largest_free_bytes) == (0, 2 * MIB, 2 * MIB)


def test_a_request_for_nothing_takes_nothing() -> None:
    assert replay(requests((0, 0), (0, None))).footprint_bytes == 0


def test_a_buffer_cannot_be_released_twice() -> None:
    with pytest.raises(ValueError, match="request 2"):
        replay(requests((0, 256), (0, None), (0, None)))


BUFFERS = st.tuples(st.integers(1, 1 << 22), st.lists(st.integers(0, 9), max_size=2))
"""A size, and which of the buffers held then are released before."""


def lives(wanted: list[tuple[int, list[int]]]) -> list[Request]:
    """Buffers that come and go in any order."""
    held: list[int] = []
    made = []
    for number, (size, gone) in enumerate(wanted):
        for place in gone:
            if place < len(held):
                made.append(Request(buffer=held.pop(place), bytes=None))
        made.append(Request(buffer=number, bytes=size))
        held.append(number)
    return made


def rounded_peak(wanted: list[Request]) -> int:
    sizes: dict[int, int] = {}
    highest = 0
    for request in wanted:
        if request.bytes is None:
            del sizes[request.buffer]
        else:
            sizes[request.buffer] = -(-request.bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        highest = max(highest, sum(sizes.values()))
    return highest


@given(st.lists(BUFFERS, min_size=1, max_size=60).map(lives), st.booleans())
def test_no_peak_is_below_the_one_it_contains(wanted: list[Request], growth: bool) -> None:
    done = replay(wanted, growth=growth)
    assert done.failed_bytes == 0
    assert rounded_peak(wanted) <= done.in_use_peak_bytes <= done.footprint_bytes
    assert done.in_use_peak_bytes < 2 * rounded_peak(wanted)  # no chunk is twice its request


@given(st.lists(BUFFERS, min_size=1, max_size=60).map(lives))
def test_a_region_of_the_footprint_is_room_enough(wanted: list[Request]) -> None:
    # Its last chunk may be handed out whole, where an endless region would be divided.
    done = replay(wanted)
    again = replay(wanted, limit_bytes=2 * done.footprint_bytes)
    assert again.failed_bytes == 0
    assert replay(wanted, limit_bytes=rounded_peak(wanted) - 256).failed_bytes > 0
