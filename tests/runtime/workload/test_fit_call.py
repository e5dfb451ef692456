"""A workload that is no script, as the call of fit that it stands for."""

from __future__ import annotations

import pytest
from tests.runtime.loaded import facts

pytestmark = pytest.mark.tf


def test_a_function_gives_model_and_data_and_what_was_assumed() -> None:
    title, names, notes = facts()["call"]
    assert (title, names) == ("plain", ["sample_weight", "x", "y"])
    assert notes == ["The model is not compiled: assumed SGD with momentum 0.9 and "
                     "mean_squared_error."]  # fmt: skip


def test_a_keras_file_brings_its_weights() -> None:
    assert facts()["kept_weights"] is True
    assert facts()["kept_title"] == "kept"


def test_the_batch_is_set_unless_the_data_has_it_already() -> None:
    assert facts()["batch_sizes"] == [8, 0]


def test_what_a_function_returns_as_data_become_arguments() -> None:
    assert facts()["data"] == [{}, ["x", "y"], ["x"]]
