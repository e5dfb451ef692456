"""What a request costs beside the model has a value and a source."""

from __future__ import annotations

from dataclasses import asdict

from tfdyno.catalog.serving_overhead import serving_overhead, serving_overhead_sources


def test_every_number_has_a_source_and_is_a_possible_amount() -> None:
    values, sources = asdict(serving_overhead()), serving_overhead_sources()
    assert set(values) == set(sources)
    assert all(sources.values())
    assert all(0.0 < value < 1.0 for value in values.values())
