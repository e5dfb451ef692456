"""runtime/export_source: a model with its names and weights, and why it cannot be loaded."""

from __future__ import annotations

import pytest
from tests.runtime.exports_seen import facts

pytestmark = pytest.mark.tf


def test_inputs_and_outputs_have_the_names_of_the_model() -> None:
    assert facts()["several"] == [
        ["age float32(None, 1)", "face float32(None, 6, 6, 1)"], ["kind", "price"]
    ]  # fmt: skip


def test_weights_are_counted_and_told_apart() -> None:
    assert facts()["weights"] == [14 * 4, 64]
    assert facts()["dtypes"] == [["float16", "float32"], ["float32"]]


def test_a_file_that_lacks_a_class_names_it_and_a_lambda_is_not_run() -> None:
    assert "it needs the class 'Scale', which is not part of Keras" in facts()["lacks"]
    assert "holds a lambda: loading it runs code from the file" in facts()["lambda"]


def test_a_savedmodel_without_signature_is_told() -> None:
    assert "has no signature; export it from the Keras model" in facts()["bare"]
