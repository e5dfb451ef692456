"""runtime/export_source: what a model takes and gives by name, and why it cannot be loaded."""

from __future__ import annotations

import pytest
from tests.runtime.exports_seen import facts

pytestmark = pytest.mark.tf


def test_inputs_and_outputs_have_the_names_of_the_model() -> None:
    assert facts()["several"] == [
        ["age float32(None, 1)", "face float32(None, 6, 6, 1)"], ["kind", "price"]
    ]  # fmt: skip


def test_a_signature_is_read_with_its_open_sizes() -> None:
    assert facts()["spec"] == "image uint8(None, 28, 28, 1)"
    assert facts()["spec_scalar"] == "text string(None,)"
    assert all("cannot be read; write image=" in one for one in facts()["bad_specs"])


def test_a_model_that_was_never_called_needs_data_or_a_signature() -> None:
    assert "has no signature: it was never called" in facts()["never"]
    assert facts()["built"] == "input float32(None, 4)"


def test_a_signature_has_to_fit_the_model() -> None:
    assert "has no input 'x'; its inputs are row." in facts()["unknown_input"]
    assert "it takes float32[any,4], not float32[any,5]" in facts()["wrong_shape"]


def test_weights_are_counted_and_told_apart() -> None:
    assert facts()["weights"] == [14 * 4, 64]
    assert facts()["dtypes"] == [["float16", "float32"], ["float32"]]


def test_a_file_that_lacks_a_class_names_it_and_a_lambda_is_not_run() -> None:
    assert "it needs the class 'Scale', which is not part of Keras" in facts()["lacks"]
    assert "holds a lambda: loading it runs code from the file" in facts()["lambda"]


def test_a_savedmodel_without_signature_is_told() -> None:
    assert "has no signature; export it from the Keras model" in facts()["bare"]
