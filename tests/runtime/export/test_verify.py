"""runtime/verify_export: an export is run by what it is made for, in turns with the model."""

from __future__ import annotations

import numpy as np
import pytest
from tests.runtime.exports_seen import facts

pytestmark = pytest.mark.tf


def test_half_precision_differs_by_less_than_four_spacings() -> None:
    assert facts()["compared"] == [True, None, True]


def test_both_batches_are_timed_in_at_least_five_rounds() -> None:
    assert facts()["timed"] == [[1, True, True, True], [32, True, True, True]]


def test_a_damaged_file_is_a_failure_of_the_converter() -> None:
    assert "the onnx that was written cannot be loaded" in facts()["broken"]


def test_one_hot_classes_are_understood() -> None:
    assert facts()["judged"] == ["output_0", [3]]


def test_targets_that_are_amounts_are_no_classes() -> None:
    assert facts()["amounts"] == ["", ["output_0"], []]


def test_classes_that_fit_several_outputs_are_refused_until_they_are_named() -> None:
    """Class 0 to 2 could be one of 16 numbers of an embedding as well as of 3 scores."""
    assert "the classes fit 2 outputs: embedding, logits" in facts()["fits_two"]
    assert "y_logits" in facts()["fits_two"]
    assert facts()["fits_named"] == "logits"


def test_an_output_of_whole_numbers_is_a_class_where_the_data_has_whole_numbers() -> None:
    assert facts()["whole"] == [[1, 2], None]


def test_a_gate_on_the_accuracy_needs_classes_before_anything_is_converted() -> None:
    assert "needs classes that fit an output: d.npz has none" in facts()["needed"]


def test_any_number_of_rows_goes_through_a_fixed_batch() -> None:
    assert facts()["fixed"] == [0.0, 4]


@pytest.mark.parametrize(
    ("values", "scores", "expected"),
    [
        ([0, 1, 1], 1, True),
        ([3, 50, 7], 1, False),  # a value that is estimated
        ([0, 9], 10, True),
        ([1, 10], 10, False),  # counted from 1, or another output's
        ([0.5, 1.0], 10, False),
        ([], 10, False),
    ],
)
def test_values_that_number_no_score_are_no_classes(
    values: list[float], scores: int, expected: bool
) -> None:
    from tfdyno.runtime.export.verify import _are_classes

    assert _are_classes(np.array(values), scores) is expected
