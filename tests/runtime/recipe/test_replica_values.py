"""What replicas hand over: by a factor, as a mean or as a sum, and known by one name."""

from __future__ import annotations

import functools

import pytest
from tests.runtime.training_child import case

pytestmark = pytest.mark.tf
seen = functools.partial(case, "training_parts", "values")


def test_a_factor_goes_to_tensors_and_to_rows_of_them() -> None:
    assert seen()["times"] == [6.0]
    assert seen()["rows"] == [[[1.0], [2.0]], [1, 0]]
    assert seen()["nothing"] is None
    assert seen()["half"] == "float16"


def test_the_mean_of_nothing_counts_nothing() -> None:
    assert seen()["without_samples"] == [0.0, 0.0]  # of one that is not a number


def test_averages_are_averaged_counters_and_sums_are_not() -> None:
    assert seen()["averaged"] == [True, False, False, True]


def test_a_variable_of_keras_and_the_one_inside_have_one_key() -> None:
    assert seen()["keys"] == [True, False]
