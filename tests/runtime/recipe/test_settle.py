"""A recipe on a compiled model: what it sets, and what comes too late or does not fit."""

from __future__ import annotations

import functools

import pytest
from tests.runtime.training_child import case

pytestmark = pytest.mark.tf
seen = functools.partial(case, "training_parts", "settled")


def test_every_setting_reaches_the_model() -> None:
    found = seen()["all"]
    assert found["clip"] == 0.5
    assert found["several"] == 3
    assert (found["ema"], found["overwrite"]) == ([True, 0.9], 7)
    assert found["switches"] == [True, 4]  # XLA, and batches per update
    assert found["eager"] is False
    assert found["notes"] == ["run_eagerly is off: execution = xla holds."]
    assert found["functions"] == [None, None]


def test_an_empty_recipe_sets_nothing() -> None:
    found = seen()["nothing"]
    assert found["notes"] == []
    assert (found["clip"], found["several"]) == (None, 1)
    assert (found["ema"][0], found["overwrite"]) == (False, None)
    assert found["switches"] == [False, None]


def test_keras_own_switches_are_off_for_as_long_as_ours_are_on() -> None:
    found = seen()["all"]
    assert found["inside"] == [False, None]
    assert found["batches"] == 4
    assert found["back"]
    assert seen()["nothing"]["batches"] == 1


def test_what_comes_after_the_first_step_comes_too_late() -> None:
    for name, setting in (("late_ema", "ema"), ("late_sums", "accumulation")):
        assert seen()[name].startswith(f"{setting} cannot be set any more")


def test_a_fixed_loss_scale_takes_the_place_of_the_dynamic_one() -> None:
    assert seen()["scaled"]["scale"] == [64.0, "SGD"]
    assert "mixed_float16" in seen()["no_scale"]


def test_a_precision_that_reaches_no_layer_is_refused() -> None:
    assert "does not reach the layers" in seen()["policy"]
