"""model/shards: every record is in one shard, in an order that only the seed decides."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.model.time.shards import shard_count, shard_name, shard_ranges, shuffle

MIB = 2**20


@pytest.mark.parametrize(
    ("records", "size_bytes", "shard_bytes", "expected"),
    [
        (100_000, 1280 * MIB, 0, 10),  # 1280 / 128
        (100_000, 1281 * MIB, 0, 11),  # rounded up
        (100_000, 5 * MIB, 0, 8),  # no fewer by default
        (5, 5 * MIB, 0, 5),  # a record each
        (100, 10 * MIB, 4 * MIB, 3),  # as asked: 2.5, rounded up
        (100, 10, 4 * MIB, 1),
        (1, 0, 0, 1),
    ],
)
def test_the_count_follows_the_size(
    records: int, size_bytes: int, shard_bytes: int, expected: int
) -> None:
    assert shard_count(records, size_bytes, shard_bytes=shard_bytes) == expected


def test_seven_records_in_three_shards() -> None:
    assert shard_ranges(7, 3) == [(0, 2), (2, 4), (4, 7)]


@given(st.integers(1, 5000), st.data())
def test_every_record_is_in_one_shard_and_counts_differ_by_one(
    records: int, data: st.DataObject
) -> None:
    shards = data.draw(st.integers(1, records))
    ranges = shard_ranges(records, shards)
    assert [place for first, end in ranges for place in range(first, end)] == list(range(records))
    counts = [end - first for first, end in ranges]
    assert len(ranges) == shards
    assert max(counts) - min(counts) <= 1 <= min(counts)


@pytest.mark.parametrize("shards", [0, 4])
def test_more_shards_than_records_are_refused(shards: int) -> None:
    with pytest.raises(ValueError, match="1 to 3 shards"):
        shard_ranges(3, shards)


def test_names_tell_place_count_and_compression() -> None:
    assert shard_name(3, 16, "none") == "data-00003-of-00016.tfrecord"
    assert shard_name(0, 1, "gzip") == "data-00000-of-00001.tfrecord.gz"


def test_a_seed_gives_the_same_order_on_every_machine_and_none_keeps_it() -> None:
    items = list(range(10))
    shuffle(items, None)
    assert items == list(range(10))
    shuffle(items, 0)
    assert items == [7, 8, 1, 5, 3, 4, 2, 0, 9, 6]  # Python's own, the same since 3.2
    offsets = array("Q", range(10))
    shuffle(offsets, 0)
    assert list(offsets) == items
