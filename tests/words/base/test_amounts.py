from __future__ import annotations

import pytest
from tests.advice import GIB

from tfdyno.core.base.interval import Interval
from tfdyno.words.base import amounts


@pytest.mark.parametrize(
    ("hours", "long", "short"),
    [
        (6.71, "6.7 hours", "6.7 h"),
        (1.0, "1 hour", "1 h"),
        (0.3, "18 minutes", "18 min"),
        (0.005, "18 seconds", "18 s"),
        (68.0, "68 hours", "68 h"),
        (1296.0, "54 days", "54 d"),
    ],
)
def test_a_time_has_two_digits_and_the_unit_that_reads_best(
    hours: float, long: str, short: str
) -> None:
    assert amounts.about_hours(hours) == long
    assert amounts.short_hours(hours) == short


@pytest.mark.parametrize(
    ("usd", "about", "in_table"),
    [
        (5.37, "$5.40", "5.37"),
        (29.53, "$30", "29.53"),
        (1204.1, "$1,200", "1,204.10"),
        (0.0487, "$0.049", "0.049"),
        (0.0, "$0", "0.00"),
    ],
)
def test_money_is_rounded_in_sentences_and_exact_in_tables(
    usd: float, about: str, in_table: str
) -> None:
    assert amounts.about_usd(usd) == about
    assert amounts.table_usd(usd) == in_table


def test_next_to_nothing_is_said_in_words() -> None:
    moment = Interval(low=1e-6, best=2e-6, high=3e-6)
    assert amounts.about_hours(2e-6) == "a second"
    assert amounts.short_hours(2e-6) == amounts.hours_range(moment) == "under 1 s"
    assert amounts.about_usd(2e-6) == amounts.usd_range(moment) == "under $0.01"
    assert amounts.usd_range(Interval(low=0.004, best=0.01, high=0.02)) == "up to $0.02"


def test_the_largest_batch_may_be_open_or_unknown() -> None:
    assert [amounts.batch_words(most) for most in (2088, 1 << 20, None)] == [
        "2,088", "1,048,576 or more", "not known"
    ]  # fmt: skip
    assert [amounts.batch_cell(most) for most in (0, 1 << 20, None)] == ["0", "≥1,048,576", "–"]


def test_a_rough_amount_is_about_or_under() -> None:
    assert amounts.roughly_usd(5.4) == "about $5.40"
    assert amounts.roughly_usd(0.004) == "under $0.01"


def test_ranges_are_dashed_and_collapse_when_both_ends_read_alike() -> None:
    assert amounts.hours_range(Interval(low=5.4, best=6.7, high=8.44)) == "5.4–8.4 h"
    assert amounts.usd_range(Interval(low=4.31, best=5.37, high=6.7)) == "$4.30–6.70"
    assert amounts.usd_range(Interval(low=13.0, best=13.0, high=13.0)) == "$13"
    assert amounts.dashed(2.01, 2.02) == "2"


@pytest.mark.parametrize(
    ("ratio", "words"), [(1.03, "3% dearer"), (1.999, "100% dearer"), (5.5, "5.5x the price")]
)
def test_a_dearer_choice_is_told_in_percent_then_in_times(ratio: float, words: str) -> None:
    assert amounts.dearer(ratio) == words


@pytest.mark.parametrize(("seconds", "text"), [(0.0867, "87"), (0.0043, "4.3"), (1.355, "1,355")])
def test_milliseconds_are_whole_from_ten_on(seconds: float, text: str) -> None:
    assert amounts.table_ms(seconds) == text


def test_a_step_is_told_in_the_unit_that_reads_best() -> None:
    assert amounts.about_step(Interval(low=0.0401, best=0.047, high=0.056)) == ("47 ms", "40–56")
    assert amounts.about_step(Interval(low=1.0, best=1.5, high=2.0))[0] == "1.5 s"


def test_memory_is_told_against_what_the_card_can_give() -> None:
    assert amounts.of_gib(10.5 * GIB, 79.2 * GIB) == "10.5 of 79 GiB"
    assert amounts.gib(4094 * GIB) == "4,094"


def test_lists_and_plurals_read_as_words() -> None:
    assert amounts.listed(["a", "b", "c"]) == "a, b and c"
    assert amounts.listed(["a"]) == "a"
    assert [amounts.plural(n, "card") for n in (1, 1200)] == ["1 card", "1,200 cards"]
