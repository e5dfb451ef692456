"""Words and numbers of the page's tables, as they are printed."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.program import KernelKind
from tfdyno.words.base import wording

GIB = 2.0**30


def around(best: float) -> Interval:
    return Interval(low=best * 0.8, best=best, high=best * 1.25)


def test_every_kind_of_kernel_has_words() -> None:
    assert set(wording.KINDS) == set(get_args(KernelKind))
    assert wording.kind("gemm") == "matrix products"
    assert wording.kind("newer") == "newer"


def test_a_cause_has_words_and_an_unknown_one_its_name() -> None:
    assert wording.cause("memory") == "memory traffic"
    assert wording.cause("host") == "host"


@pytest.mark.parametrize(
    ("value", "text"),
    [(24, "24"), (0.5, "0.5"), (1000, "1,000"), (1e6, "1,000,000"), (1.5e9, "1,500,000,000")],
)
def test_a_number_of_the_user_stays_as_it_was_given(value: float, text: str) -> None:
    assert wording.plain(value) == text


@pytest.mark.parametrize(
    ("value_h", "text"), [(0.034, "0.03"), (0.5, "0.50"), (6.71, "6.7"), (1296.2, "1,296")]
)
def test_hours_have_the_digits_that_a_table_needs(value_h: float, text: str) -> None:
    assert wording.hours(value_h) == text


def test_both_ends_of_a_range_have_the_digits_of_the_best() -> None:
    assert wording.hours_range(around(0.9)) == "0.72–1.12"  # 1.125, to even
    assert wording.hours_range(around(6.0)) == "4.8–7.5"
    assert wording.hours_range(around(2000.0)) == "1,600–2,500"
    assert wording.milliseconds_range(around(0.02)) == "16–25"
    assert wording.milliseconds_range(around(0.002)) == "1.6–2.5"
    assert wording.milliseconds_range(around(0.0002)) == "0.16–0.25"


def test_parts_of_the_memory_can_be_added_up() -> None:
    assert wording.gib_part(0.1 * GIB) == "0.10"
    assert wording.gib_part(9.994 * GIB) == "9.99"
    assert wording.gib_part(12.34 * GIB) == "12.3"
    assert wording.gib_range(around(10 * GIB)) == "8.0–12.5"


def test_a_range_is_told_in_percent_of_the_best() -> None:
    assert wording.interval_percent(around(7.0)) == "−20 to +25%"
    assert wording.interval_percent(Interval(low=0.0, best=0.0, high=1.0)) == "–"


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 cards"), (1, "1 card"), (2, "2 cards"), (1340, "1,340 cards")]
)
def test_a_count_agrees_with_its_noun(number: int, text: str) -> None:
    assert wording.count(number, "card") == text


def test_an_irregular_plural_is_given() -> None:
    assert wording.count(3, "kernel launch", "kernel launches") == "3 kernel launches"


@pytest.mark.parametrize(
    ("names", "most", "text"),
    [
        ([], 0, ""),
        (["a"], 0, "a"),
        (["a", "b"], 0, "a and b"),
        (["a", "b", "c"], 0, "a, b and c"),
        (["a", "b", "c", "d"], 2, "a, b and 2 more"),
        (["a", "b", "c"], 2, "a, b and c"),  # "1 more" would be no shorter
    ],
)
def test_names_are_listed_and_the_rest_is_counted(names: list[str], most: int, text: str) -> None:
    assert wording.listing(names, most=most) == text


def test_no_line_breaks_between_a_number_and_its_unit() -> None:
    assert wording.tied("6.7 hours on 24 GiB") == "6.7\u00a0hours on 24\u00a0GiB"
    assert wording.tied("3 heads and 5 msgs") == "3 heads and 5 msgs"


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("", ""),
        ("why is it slow?", "Why is it slow?"),
        ("2.5x the price", "2.5 times the price."),
        ("8 x H100", "8 × H100."),
        ("it fits.", "It fits."),
    ],
)
def test_a_sentence_begins_with_a_capital_and_stops(text: str, made: str) -> None:
    assert wording.sentence(text) == made


@given(st.text("abc x123.?: ", max_size=30))
def test_a_sentence_of_the_page_stays_as_it_is(text: str) -> None:
    once = wording.sentence(text)
    assert wording.sentence(once) == once


def test_only_the_first_letter_changes() -> None:
    assert wording.capital("tf.function runs") == "Tf.function runs"
    assert wording.capital("") == ""
    assert wording.execution("xla") == "XLA"
    assert wording.execution("graph") == "graph"


@given(st.lists(st.sampled_from("abcd")))
def test_names_stand_once_in_their_order(names: list[str]) -> None:
    found = wording.unique(names)
    assert set(found) == set(names)
    assert list(found) == sorted(set(names), key=names.index)
