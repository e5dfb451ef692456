"""A measured pipeline is written and read without loss."""

from __future__ import annotations

from tests.advice import exactly
from tests.feeds import feed

from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.measure.feed import Feed, Feeding


def test_a_feed_is_read_as_it_was_written() -> None:
    assert from_json(to_json(feed()), Feed) == feed()


def test_gpus_that_get_less_than_they_take_are_short_of_data() -> None:
    given = {"vcpus": 8, "rate_per_s": exactly(500.0), "needed_per_s": exactly(1000.0)}
    assert Feeding(**given, fed_ratio=0.5).is_short  # type: ignore[arg-type]
    assert not Feeding(**given, fed_ratio=1.0).is_short  # type: ignore[arg-type]
