"""core/export: which exports pass, by numbers worked by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exports import difference, verification

from tfdyno.core.export import EXACT, FORMATS, Gates, allowed_difference, failures


def test_float_formats_may_differ_by_a_ten_thousandth_where_nobody_asks() -> None:
    assert failures("onnx", Gates(), verification(9.9e-5)) == ()
    assert failures("onnx", Gates(), verification(1.1e-4)) == (
        "digit differs by 0.00011, more than the 0.0001 allowed",
    )


def test_large_outputs_may_differ_in_proportion() -> None:
    of_prices = difference(0.05, largest_abs=1000.0)
    assert allowed_difference("onnx", Gates(), of_prices, ("float32",)) == pytest.approx(0.1)


def test_what_is_asked_for_is_absolute() -> None:
    of_prices = difference(0.05, largest_abs=1000.0)
    assert allowed_difference("onnx", Gates(max_difference=0.01), of_prices, ()) == 0.01


def test_a_model_that_computes_in_halves_may_differ_by_four_of_their_spacings() -> None:
    assert allowed_difference("onnx", Gates(), difference(), ("float16", "float32")) == 4 / 1024
    assert allowed_difference("onnx", Gates(), difference(), ("bfloat16",)) == 4 / 128


@pytest.mark.parametrize("kind", sorted(set(FORMATS) - EXACT))
def test_rounded_formats_have_no_gate_unless_asked(kind: str) -> None:
    assert failures(kind, Gates(), verification(0.3)) == ()  # type: ignore[arg-type]
    assert failures(kind, Gates(max_difference=0.1), verification(0.3))  # type: ignore[arg-type]


def test_an_accuracy_that_falls_by_what_is_allowed_passes() -> None:
    gates = Gates(max_accuracy_drop_ratio=0.01)
    assert failures("litert-int8", gates, verification(after_ratio=0.89)) == ()
    assert failures("litert-int8", gates, verification(after_ratio=0.8875)) == (
        "accuracy falls by 1.25 points, more than the 1.00 allowed",
    )


def test_a_difference_that_is_no_number_passes_no_gate() -> None:
    assert failures("onnx", Gates(), verification(math.inf))
    assert failures("onnx", Gates(max_difference=1.0), verification(math.nan))


@given(wide=st.floats(0, 10), narrow=st.floats(0, 10), apart=st.floats(0, 10))
def test_what_passes_a_narrow_gate_passes_a_wider_one(
    wide: float, narrow: float, apart: float
) -> None:
    low, high = sorted((wide, narrow))
    if not failures("onnx", Gates(max_difference=low), verification(apart)):
        assert not failures("onnx", Gates(max_difference=high), verification(apart))
