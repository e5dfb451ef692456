"""runtime/export_signature: what a model takes is known, asked for, or as the data has it."""

from __future__ import annotations

import pytest
from tests.runtime.exports_seen import facts

pytestmark = pytest.mark.tf


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
