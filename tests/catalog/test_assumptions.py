"""What is assumed has a value, a source, and nothing is read that has no use."""

from __future__ import annotations

from dataclasses import asdict, fields

import pytest

from tfdyno.catalog import assumptions
from tfdyno.catalog.assumptions import serving_overhead, serving_overhead_sources
from tfdyno.core.choose.advice import Assumed


def test_every_assumption_has_a_source() -> None:
    sources = assumptions.assumption_sources()
    assert set(sources) <= {field.name for field in fields(Assumed)}
    assert all(sources.values())


def test_every_row_of_the_file_is_used() -> None:
    made = assumptions.assumed()
    assert {name for name in assumptions.assumption_sources() if not hasattr(made, name)} == set()


@pytest.mark.parametrize("field", fields(Assumed), ids=lambda field: field.name)
def test_an_assumption_is_a_possible_amount(field: object) -> None:
    value = getattr(assumptions.assumed(), field.name)  # type: ignore[attr-defined]
    assert value >= 0
    if field.name.endswith("_ratio"):  # type: ignore[attr-defined]
        assert value < 1


def test_every_number_has_a_source_and_is_a_possible_amount() -> None:
    values, sources = asdict(serving_overhead()), serving_overhead_sources()
    assert set(values) == set(sources)
    assert all(sources.values())
    assert all(0.0 < value < 1.0 for value in values.values())
