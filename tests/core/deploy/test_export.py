"""core/export: which exports pass, by numbers worked by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exports import difference, verification

from tfdyno.core.deploy.export import (
    EXACT,
    FORMATS,
    Accuracy,
    Format,
    Gates,
    allowed_difference,
    failures,
)


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


def test_whole_numbers_that_became_floats_are_judged_as_rounded_formats_are() -> None:
    whole = replace(verification(difference(0.3, clear_top1_ratio=0.95)), made_floats=True)
    assert failures("huggingface", Gates(), whole) == ()
    assert failures("huggingface", Gates(), replace(whole, made_floats=False))
    assert failures("huggingface", Gates(max_difference=0.1), whole)


def test_a_reader_that_rounds_to_halves_may_differ_by_four_of_their_spacings() -> None:
    found = replace(verification(0.003), runner_dtypes=("float16",))
    assert failures("huggingface", Gates(), found) == ()
    assert failures("huggingface", Gates(), replace(found, runner_dtypes=()))


@pytest.mark.parametrize("kind", sorted(set(FORMATS) - EXACT))
def test_rounded_formats_may_differ_by_anything_finite_unless_asked(kind: Format) -> None:
    assert failures(kind, Gates(), verification(0.3)) == ()
    assert failures(kind, Gates(max_difference=0.1), verification(0.3))


@pytest.mark.parametrize("kind", FORMATS)
def test_no_format_passes_a_difference_that_is_no_number(kind: Format) -> None:
    for wrong in (math.inf, math.nan):
        assert failures(kind, Gates(), verification(wrong)) == (
            "digit is NaN or infinite on one side where it is not on the other",
        )


def test_an_output_without_a_finite_value_passes_no_gate_since_nothing_was_compared() -> None:
    nothing = verification(difference(0.0, not_finite_ratio=1.0))
    wide = Gates(max_difference=9.0, max_accuracy_drop_ratio=0.5)
    for gates in (Gates(), wide):
        assert failures("keras", gates, nothing) == (
            "digit is NaN or infinite throughout in the model itself: nothing was compared",
        )
    assert failures("keras", Gates(), verification(difference(0.0, not_finite_ratio=0.9))) == ()


def test_a_rounded_format_has_to_keep_clear_classes_where_no_gate_is_given() -> None:
    other = verification(difference(0.3, clear_top1_ratio=0.156))
    assert failures("litert-fp16", Gates(), other) == (
        "digit keeps the class in 15.6 % of the rows where it is clear, fewer than the 90 % that a "
        "rounded format needs without a gate",
    )
    assert failures("litert-int8", Gates(max_difference=1.0), other) == ()
    assert failures("litert-int8", Gates(max_accuracy_drop_ratio=0.1), other) == ()
    assert failures("litert-int8", Gates(), verification(difference(clear_top1_ratio=0.9))) == ()


def test_a_gate_on_the_accuracy_fails_where_no_row_has_one() -> None:
    nothing = replace(verification(), accuracy=None)
    assert failures("onnx", Gates(max_accuracy_drop_ratio=0.5), nothing) == (
        "no row has an accuracy: the model's own scores are NaN or infinite in each",
    )
    assert failures("onnx", Gates(), nothing) == ()


@pytest.mark.parametrize(
    ("rows", "before", "common", "expected"),
    [
        (400, 0.90, 0.25, False),
        (400, 0.27, 0.25, True),  # 0.25 + 1.645 * sqrt(0.25 * 0.75 / 400) = 0.286
        (400, 0.29, 0.25, False),
        (400, 0.10, 0.25, True),
        (400, 1.00, 1.00, True),  # of one class alone
        (400, 0.10, 0.00, False),  # in what an earlier tfdyno wrote
    ],
)
def test_chance_is_what_the_commonest_class_would_get(
    rows: int, before: float, common: float, expected: bool
) -> None:
    found = Accuracy(output="digit", rows=rows, before_ratio=before, after_ratio=before,
                     commonest_ratio=common)  # fmt: skip
    assert found.is_chance is expected


def test_an_accuracy_that_falls_by_what_is_allowed_passes() -> None:
    gates = Gates(max_accuracy_drop_ratio=0.01)
    assert failures("litert-int8", gates, verification(after_ratio=0.89)) == ()
    assert failures("litert-int8", gates, verification(after_ratio=0.8875)) == (
        "accuracy falls by 1.25 points, more than the 1.00 allowed",
    )


@given(wide=st.floats(0, 10), narrow=st.floats(0, 10), apart=st.floats(0, 10))
def test_what_passes_a_narrow_gate_passes_a_wider_one(
    wide: float, narrow: float, apart: float
) -> None:
    low, high = sorted((wide, narrow))
    if not failures("onnx", Gates(max_difference=low), verification(apart)):
        assert not failures("onnx", Gates(max_difference=high), verification(apart))
