from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.advice import estimate, exactly

from tfdyno.core.interval import Interval
from tfdyno.core.scale_out import GpuPrice, ScaleOut
from tfdyno.model.scale_out import scale_out
from tfdyno.view.scale_out_text import MOST_TABLES, scale_out_text, sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

PRICE = GpuPrice(usd_per_h=0.36, offer="cloud/x", gpu_count=8, priced_on="2026-11", source="list")


def series(rates: Sequence[tuple[int, float]], how: str = "graph") -> ScaleOut:
    return scale_out(
        [
            estimate(
                replicas=count,
                samples_per_s=exactly(rate),
                execution="xla" if count == 1 else how,
                exposed_s=0.02,
                efficiency_ratio=Interval(low=0.5, best=0.8, high=1.0) if count > 1 else None,
            )
            for count, rate in rates
        ],
        holds="batch per replica",
        price=PRICE,
    )


@pytest.mark.parametrize(
    ("rates", "told"),
    [
        (
            [(1, 1000), (2, 1400), (4, 1400)],
            "A second card gains 1.4×: beyond 1 an added card brings 0.40 of the first.",
        ),
        (
            [(1, 1000), (2, 1600), (4, 1500)],
            "A second card gains 1.6×, 4 gain 1.5×: beyond 2 an added card brings nothing.",
        ),
        (
            [(1, 1000), (2, 1900), (8, 7000)],
            "A second card gains 1.9×, 8 gain 7×: each added card brings half of the first or "
            "more.",
        ),
        (
            [(1, 1000), (2, 700)],
            "A second card gains 0.70×: one alone is faster.",
        ),
        ([(1, 1000), (4, 3000)], "4 card gain 3×: each added card brings half of the first or "
                                 "more."),
        ([(1, 1000)], "Only one card was asked for."),
    ],
)  # fmt: skip
def test_one_sentence_says_where_it_stops_paying(rates: list[tuple[int, float]], told: str) -> None:
    assert sentence(series(rates), "card") == told


def test_the_table_has_the_gain_its_range_and_the_money() -> None:
    text = scale_out_text([series([(1, 1000), (2, 1600)])], {"card": "card"}, width=120)
    assert "$ a million" in text
    (row,) = [line for line in text.splitlines() if line.strip().startswith("2 ")]
    assert "1.60" in row
    assert "80%" in row
    assert "part of the loss is that" in text
    assert "nothing is hidden" in text
    assert "$0.36 a GPU and hour, cloud/x, 2026-11" in " ".join(text.split())


def test_many_cards_are_told_in_a_sentence_each() -> None:
    many = [series([(1, 1000), (2, 1600)])] * (MOST_TABLES + 1)
    text = scale_out_text(many, {"card": "card"})
    assert "samples/s" not in text
    assert text.count("A second card gains") == MOST_TABLES + 1
