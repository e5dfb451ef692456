"""view/convert_progress: how far a conversion is, in words with the pace worked by hand."""

from __future__ import annotations

import json

import pytest

from tfdyno.view.data.convert_progress import ConvertEvent, pace_words, place_words, read_event

EVENT = ConvertEvent(
    shard=3, of_shards=16, records=1200, of_records=50_000, written_bytes=84 * 2**20
)
LINE = json.dumps(
    {"event": "convert", "shard": 3, "of_shards": 16, "records": 1200, "of_records": 50_000,
     "bytes": 84 * 2**20}
)  # fmt: skip


def test_an_event_is_read_and_a_stage_is_none() -> None:
    assert read_event(LINE) == EVENT
    assert read_event("importing TensorFlow") is None


@pytest.mark.parametrize("line", ["{", "{}", '{"shard": 1}', LINE.replace("1200", '"many"')])
def test_what_is_no_event_is_none(line: str) -> None:
    assert read_event(line) is None


def test_place_and_pace() -> None:
    assert place_words(EVENT) == "shard 3 of 16"
    # 84 MiB in 2 s; (50,000 - 1,200) records at 600 per second are 81.3 s
    assert pace_words(EVENT, 2.0) == "1,200 of 50,000  42 MiB/s  ETA 1.4 min"
    assert pace_words(EVENT, 0.5) == "1,200 of 50,000"


def test_the_end_has_no_time_left() -> None:
    last = ConvertEvent(shard=1, of_shards=1, records=5, of_records=5, written_bytes=2**20)
    assert pace_words(last, 4.0) == "5 of 5  256 KiB/s"
