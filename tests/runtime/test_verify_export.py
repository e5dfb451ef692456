"""runtime/verify_export: an export is run by what it is made for, in turns with the model."""

from __future__ import annotations

import pytest
from tests.runtime.exports_seen import facts

pytestmark = pytest.mark.tf


def test_half_precision_differs_by_less_than_four_spacings() -> None:
    assert facts()["compared"] == [True, None, 1.0]


def test_both_batches_are_timed_in_at_least_five_rounds() -> None:
    assert facts()["timed"] == [[1, True, True, True], [32, True, True, True]]


def test_a_damaged_file_is_a_failure_of_the_converter() -> None:
    assert "the onnx that was written cannot be loaded" in facts()["broken"]


def test_one_hot_classes_are_understood() -> None:
    assert facts()["judged"] == ["output_0", [3]]
