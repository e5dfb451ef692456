"""Values of options are read once, in words a person typed, and refused in a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.cli import options
from tfdyno.core.base.errors import UsageError

PARAMETER = click.Option(["--file"])


@pytest.mark.parametrize("text", ["0", "-3", "1.5", "nan", "inf", "many", ""])
def test_a_number_of_samples_is_whole_and_at_least_one(text: str) -> None:
    with pytest.raises(UsageError, match=f"^batch size '?{text}'? is not"):
        options.Whole("batch size").convert(text, None, None)


def test_a_number_of_samples_may_be_grouped_and_has_a_limit() -> None:
    assert options.Whole("steps").convert("90_000", None, None) == 90_000
    assert options.Whole("steps").convert("1e6", None, None) == 1_000_000
    with pytest.raises(UsageError, match=r"steps 11 is not possible; give at most 10\.$"):
        options.Whole("steps", most=10).convert("11", None, None)


@pytest.mark.parametrize(("text", "value"), [("24", 24.0), ("0.5", 0.5), ("$30", 30.0)])
def test_an_amount_may_have_a_dollar_sign(text: str, value: float) -> None:
    assert options.Positive("budget").convert(text, None, None) == value


@pytest.mark.parametrize("text", ["0", "-1", "$-1", "nan"])
def test_an_amount_is_above_zero(text: str) -> None:
    with pytest.raises(UsageError, match=r"^budget .* is not possible; give"):
        options.Positive("budget").convert(text, None, None)


@given(st.lists(st.integers(1, 4096), min_size=1, max_size=6))
def test_a_list_of_numbers_keeps_its_order_and_drops_repetition(numbers: list[int]) -> None:
    text = ", ".join(map(str, [*numbers, *numbers]))
    found = options.Wholes("batch size").convert(text, None, None)
    assert found == tuple(dict.fromkeys(numbers))
    assert options.Wholes("batch size").convert(found, None, None) == found  # a default


def test_an_empty_place_in_a_list_is_refused() -> None:
    with pytest.raises(UsageError, match="batch size '' is not a number"):
        options.Wholes("batch size").convert("32,,64", None, None)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("224,224,3", (224, 224, 3)),
        ("(224, 224, 3)", (224, 224, 3)),  # as Python prints it
        ("[128]", (128,)),
        ("(128,)", (128,)),
        ("()", ()),
        ("", ()),
    ],
)
def test_a_shape_may_be_written_as_python_does(text: str, shape: tuple[int, ...]) -> None:
    assert options.shape(text) == shape


@pytest.mark.parametrize("text", ["None,128", "224x224", "0,3", "224,,3"])
def test_a_shape_of_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^input size "):
        options.shape(text)


def test_a_wrong_choice_is_told_with_the_nearest() -> None:
    kind = options.OneOf("route", ("auto", "quick", "exact"))
    assert kind.convert("quick", None, None) == "quick"
    with pytest.raises(UsageError) as told:
        kind.convert("quik", None, None)
    assert str(told.value) == ("route 'quik' is not one of auto, quick, exact; did you mean quick?")


@pytest.mark.parametrize("kind", [options.Filled(), options.NewFile()])
@pytest.mark.parametrize("text", ["", "   "])
def test_an_empty_value_names_the_option(kind: click.ParamType[Any], text: str) -> None:
    with pytest.raises(UsageError, match=r"^--file is empty; "):
        kind.convert(text, PARAMETER, None)


def test_a_name_is_stripped_and_a_file_is_taken_as_it_is() -> None:
    assert options.Filled().convert(" t4 ", None, None) == "t4"
    assert options.NewFile().convert("a b.html", None, None) == Path("a b.html")


def test_a_report_is_not_written_to_standard_output() -> None:
    with pytest.raises(UsageError, match="--file does not write to standard output; name a file"):
        options.NewFile().convert("-", PARAMETER, None)
