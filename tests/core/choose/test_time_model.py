"""Constants are found by name and never stand outside their own range."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tfdyno.core.choose.time_model import MemoryModel, Parameter, TimeModel


def parameter(name: str, value: float, *, low: float = 0.0, high: float = 1.0) -> Parameter:
    return Parameter(
        name=name, value=value, prior=0.5, low=low, high=high, unit="ratio", fitted=True, source="x"
    )


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_a_value_outside_its_range_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match=rf"^e_loop: need 0\.0 <= {value} <= 1\.0$"):
        parameter("e_loop", value)


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_the_ends_belong_to_the_range(value: float) -> None:
    assert parameter("e_loop", value).value == value


@pytest.mark.parametrize(
    ("value", "fitted", "source", "identified"),
    [
        (0.5, True, "x", True),
        (0.0, True, "x", False),  # the fit ended at the low end
        (0.9995, True, "x", False),  # and at the high one, as near as the file is rounded
        (1.0, False, "judgement", True),  # not fitted: a decision, whatever the value
        (1.0, False, "tfdyno-truth fit: runs on 2-8 GPUs", False),  # fitted on its own
    ],
)
def test_a_fit_that_ends_at_a_bound_does_not_identify_the_constant(
    value: float, fitted: bool, source: str, identified: bool
) -> None:
    found = replace(parameter("e_loop", value), fitted=fitted, source=source)
    assert found.identified == identified
    assert found.learned == (fitted or source.startswith("tfdyno-truth fit"))


def test_constants_are_asked_for_by_name() -> None:
    found = {name: parameter(name, value) for name, value in (("a", 0.25), ("b", 0.75))}
    time = TimeModel(version="1", parameters=found, intervals={}, sustained_clock={})
    memory = MemoryModel(version="1", parameters=found)
    assert (time["a"], time["b"]) == (memory["a"], memory["b"]) == (0.25, 0.75)
    for model in (time, memory):
        with pytest.raises(KeyError, match="c"):
            model["c"]
