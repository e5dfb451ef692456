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


def around(best: float) -> Interval:
    return Interval(low=best * 0.8, best=best, high=best * 1.25)


@pytest.mark.parametrize(
    ("value", "text"),
    [(24, "24"), (0.5, "0.5"), (1000, "1,000"), (1e6, "1,000,000"), (1.5e9, "1,500,000,000")],
)
def test_a_number_of_the_user_stays_as_it_was_given(value: float, text: str) -> None:
    assert amounts.plain(value) == text


@pytest.mark.parametrize(
    ("value_h", "text"), [(0.034, "0.03"), (0.5, "0.50"), (6.71, "6.7"), (1296.2, "1,296")]
)
def test_hours_have_the_digits_that_a_table_needs(value_h: float, text: str) -> None:
    assert amounts.table_hours(value_h) == text


def test_both_ends_of_a_range_have_the_digits_of_the_best() -> None:
    assert amounts.table_hours_range(around(0.9)) == "0.72–1.12"  # 1.125, to even
    assert amounts.table_hours_range(around(6.0)) == "4.8–7.5"
    assert amounts.table_hours_range(around(2000.0)) == "1,600–2,500"
    assert amounts.table_ms_range(around(0.02)) == "16–25"
    assert amounts.table_ms_range(around(0.002)) == "1.6–2.5"
    assert amounts.table_ms_range(around(0.0002)) == "0.16–0.25"


def test_parts_of_the_memory_can_be_added_up() -> None:
    assert amounts.gib_part(0.1 * GIB) == "0.10"
    assert amounts.gib_part(9.994 * GIB) == "9.99"
    assert amounts.gib_part(12.34 * GIB) == "12.3"
    assert amounts.gib_range(around(10 * GIB)) == "8.0–12.5"


def test_a_range_is_told_in_percent_of_the_best() -> None:
    assert amounts.interval_percent(around(7.0)) == "−20 to +25%"
    assert amounts.interval_percent(Interval(low=0.0, best=0.0, high=1.0)) == "–"


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 cards"), (1, "1 card"), (2, "2 cards"), (1340, "1,340 cards")]
)
def test_a_count_agrees_with_its_noun(number: int, text: str) -> None:
    assert amounts.plural(number, "card") == text


def test_an_irregular_plural_is_given() -> None:
    assert amounts.plural(3, "kernel launch", "kernel launches") == "3 kernel launches"


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
    assert amounts.listed(names, most=most) == text


def test_only_the_first_letter_changes() -> None:
    assert amounts.capital("tf.function runs") == "Tf.function runs"
    assert amounts.lower("TF runs") == "tF runs"
    assert amounts.capital("") == ""


@pytest.mark.parametrize(
    ("time_s", "told"),
    [(2.5, "2.5 s"), (1.0, "1 s"), (0.0345, "34 ms"), (0.001, "1 ms"), (5.6e-6, "5.6 µs")],
)
def test_times_have_two_digits(time_s: float, told: str) -> None:
    assert amounts.short_time(time_s) == told
