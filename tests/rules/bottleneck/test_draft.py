"""Drafts become sentences."""

from __future__ import annotations

import pytest

from tfdyno.core.base.errors import ToolError
from tfdyno.rules.bottleneck.draft import (
    Draft,
    bottleneck,
    duration,
    evidence,
    percent,
    settings_on_jax,
)


@pytest.mark.parametrize(
    ("seconds_s", "text"),
    [(1.5, "1.50 s"), (0.0123, "12.3 ms"), (4.5e-6, "4.50 µs"), (0.0, "0 µs")],
)
def test_durations_have_the_unit_that_fits(seconds_s: float, text: str) -> None:
    assert duration(seconds_s) == text
    assert percent(0.126) == "13 %"


def test_a_draft_fills_the_words_of_its_cause() -> None:
    told = (evidence("seen", "here"),)
    found = bottleneck(Draft(cause="host.busy_host", evidence=told, values={"share": "40 %"}))
    assert found.bottleneck_class == "host"
    assert found.summary.startswith("For 40 % of the step")
    assert found.settings == {}


def test_settings_of_a_draft_stand_before_those_of_its_cause() -> None:
    told = (evidence("seen", "here"),)
    values = {"wait": "40 %", "stage": "map"}
    one = Draft(cause="input.sequential_map", evidence=told, values=values)
    assert bottleneck(one).settings == {"input.parallel_calls": "-1"}
    two = Draft(cause="input.sequential_map", evidence=told, values=values, settings={})
    assert bottleneck(two).settings == {}


def test_words_that_cannot_be_filled_are_a_fault_of_the_tool() -> None:
    with pytest.raises(ToolError, match=r"the texts of host\.busy_host do not fit"):
        bottleneck(Draft(cause="host.busy_host", evidence=(evidence("seen", "here"),)))


def test_settings_are_those_that_jax_has() -> None:
    assert settings_on_jax({"execution": "graph"}) == {"execution": "xla"}
    assert settings_on_jax({"batch_size": "64", "accumulation": "2"}) == {
        "batch_size": "64",
        "accumulation": "2",
    }
    assert settings_on_jax({"threads_intra": "4", "threads_inter": "4"}) == {}


def test_the_fix_is_that_of_the_backend() -> None:
    told = (evidence("seen", "here"),)
    one = Draft(cause="host.numpy_in_step", evidence=told, values={"call": "io_callback"})
    (on_jax,), (here,) = bottleneck(one, "jax").fix, bottleneck(one).fix
    assert "jax.numpy" in on_jax.text
    assert "TensorFlow operations" in here.text
