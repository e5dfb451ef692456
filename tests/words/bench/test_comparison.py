from __future__ import annotations

from dataclasses import replace

import pytest
from tests.advice import offer
from tests.anchors import anchor
from tests.measurements import TASK

from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.recalibration import Gap
from tfdyno.core.measure.measurement import Comparison
from tfdyno.words.bench.comparison import (
    dollars,
    gap_words,
    interval_words,
    price_words,
    ratio_words,
    side_names,
    verdict_words,
)

FASTER = Comparison(
    verdict="faster", ratio=1.24, interval=(1.19, 1.30), confidence_ratio=0.99, paired=True,
    reason="The interval leaves 1 out.",
)  # fmt: skip


def test_the_verdict_is_one_sentence_with_its_interval() -> None:
    assert verdict_words("A", "B", FASTER) == "B is 1.24x as fast as A (1.19–1.30, 99 %)."


def test_no_difference_says_how_large_it_could_be() -> None:
    same = replace(FASTER, verdict="no_difference", ratio=1.002, interval=(0.981, 1.024))
    assert verdict_words("A", "B", same) == (
        "No difference between B and A: B is 1.002x as fast (0.981–1.024, 99 %)."
    )


def test_what_does_not_compare_says_why() -> None:
    refused = replace(FASTER, verdict="not_comparable", reason="task.mode differs: a and b.")
    assert verdict_words("A", "B", refused) == (
        "B does not compare with A: task.mode differs: a and b."
    )


@pytest.mark.parametrize(
    ("ratio", "words"), [(1.0123, "1.012x"), (0.9512, "0.951x"), (2.0, "2.00x"), (0.5, "0.50x")]
)
def test_ratios_near_one_get_a_third_decimal(ratio: float, words: str) -> None:
    assert ratio_words(ratio) == words


def test_both_bounds_have_the_same_decimals() -> None:
    assert interval_words((1.01, 1.2)) == "1.010–1.200"
    assert interval_words((1.246, 1.254)) == "1.246–1.254"
    assert interval_words((1.0, 1.0)) == "1.000–1.000"


@pytest.mark.parametrize(
    ("usd", "words"), [(0.06944, "$0.0694"), (1.2, "$1.20"), (1234.4, "$1,234")]
)
def test_dollars(usd: float, words: str) -> None:
    assert dollars(usd) == words


def test_a_price_has_its_kind_date_and_source() -> None:
    one = offer("l4", 0.5, provider="cloud", instance="g6", region="eu", spot=True,
                priced_on="2026-10-01", source="a price page")  # fmt: skip
    assert price_words(TASK, one, 2, 720_000.0, 0.0694) == (
        "720,000 images per US$, $0.0694 an epoch: 2 x cloud g6, eu, spot, $0.500/h on "
        "2026-10-01 (a price page)"
    )
    assert "an epoch" not in price_words(TASK, one, 1, 1.0, None)


def test_a_gap_says_how_far_off_the_estimate_is() -> None:
    found = Gap(estimated_s=Interval(low=0.08, best=0.1, high=0.125), anchor=anchor(1.2))
    assert gap_words(found) == (
        "100 ms (80–125); measured 120 ms, 1.20 times it, inside its interval"
    )


def test_sides_of_two_backends_bear_their_names() -> None:
    jax = replace(TASK, backend="jax")
    assert side_names(TASK, TASK) == ("A", "B")
    assert side_names(TASK, jax) == ("A (TensorFlow)", "B (JAX)")
    assert side_names(jax, TASK) == ("A (JAX)", "B (TensorFlow)")
