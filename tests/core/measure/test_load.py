from __future__ import annotations

import pytest
from tests.loads import result, stage, stretch

from tfdyno.core.base.codec import from_builtins, to_builtins
from tfdyno.core.measure.load import LoadPlan, StageRun


@pytest.mark.parametrize(
    "fields", [{"kind": "open"}, {"clients": 0}, {"seconds_s": 0.0}, {"kind": "open", "clients": 2}]
)
def test_a_load_that_is_none_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="need"):
        LoadPlan(**fields)  # type: ignore[arg-type]


def test_a_stretch_survives_its_way_through_json() -> None:
    run = stretch([0.01] * 3, examples={500: "x"}, batches={1: 2})
    assert from_builtins(to_builtins(run), StageRun) == run


def test_a_fault_fails_the_whole() -> None:
    found = stage(stretch([0.01] * 3))
    assert not result(found).failed
    assert result(found, faults=("another server",)).failed
