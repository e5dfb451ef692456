from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.advice import estimate, exactly

from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.scale_out import GpuPrice, ScaleOut
from tfdyno.model.choose.scale_out import scale_out
from tfdyno.view.choose.scale_out_text import MOST_TABLES, scale_out_text, sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

PRICE = GpuPrice(usd_per_h=0.36, offer="cloud/x", gpu_count=8, priced_on="2026-11", source="list")


def series(
    rates: Sequence[tuple[int, float]], how: str = "xla", exposed: float = 0.0, batch: int = 100
) -> ScaleOut:
    """100 samples a card and step; ``exposed`` is a share of the step of several."""
    return scale_out(
        [
            estimate(
                replicas=count,
                batch_size=100 if count == 1 else batch,
                step_s=exactly(100 * count / rate),
                samples_per_s=exactly(rate),
                execution="xla" if count == 1 else how,
                exposed_s=exposed * 100 * count / rate if count > 1 else 0.0,
                efficiency_ratio=Interval(low=0.5, best=0.8, high=1.0) if count > 1 else None,
            )
            for count, rate in rates
        ],
        holds="batch per replica" if batch == 100 else "global batch",
        price=PRICE,
    )


def test_cards_without_peer_access_are_told() -> None:
    found = series([(1, 1000), (2, 1400)])
    told = "copy through the host's memory, without peer access"
    assert told not in " ".join(scale_out_text([found], {found.gpu: "card"}).split())
    host = replace(found, through_host=True)
    assert told in " ".join(scale_out_text([host], {host.gpu: "card"}).split())


@pytest.mark.parametrize(
    ("rates", "told"),
    [
        (
            [(1, 1000), (2, 1400), (4, 1400)],
            "A second card gains 1.4×, 4 gain 1.4×: from 1 to 2 an added card brings 0.40 of the "
            "first.",
        ),
        (
            [(1, 1000), (2, 1600), (4, 1500)],
            "A second card gains 1.6×, 4 gain 1.5×: from 2 to 4 an added card brings nothing.",
        ),
        (
            [(1, 1000), (2, 1600), (4, 1900), (8, 2500)],
            "A second card gains 1.6×, 4 gain 1.9×, 8 gain 2.5×: from 2 to 4 an added card brings "
            "0.15 of the first.",
        ),
        (
            [(1, 1000), (2, 1900), (8, 7000)],
            "A second card gains 1.9×, 8 gain 7×: each added card brings 0.85 to 0.90 of the "
            "first.",
        ),
        (
            [(1, 1000), (2, 700)],
            "A second card gains 0.70×: one alone is faster.",
        ),
        (
            [(1, 1000), (2, 950), (4, 1900), (8, 3800)],
            "A second card gains 0.95×, 8 gain 3.8×: from 1 to 2 an added card brings nothing.",
        ),
        ([(1, 1000), (4, 3000)], "4 card gain 3×: each added card brings 0.67 of the first."),
        ([(1, 1000)], "Only one card was asked for."),
    ],
)  # fmt: skip
def test_one_sentence_says_where_it_stops_paying(rates: list[tuple[int, float]], told: str) -> None:
    assert sentence(series(rates), "card") == told


@pytest.mark.parametrize(
    ("rates", "told"),
    [
        (
            [(1, 1000), (2, 1400), (4, 2800), (8, 5600)],
            "A second card gains 1.4×, 8 gain 5.6×: on several cards the step runs as a graph, "
            "which alone takes 1.4 times as long; each added card brings 0.70 of the first.",
        ),
        (
            [(1, 1000), (2, 950), (4, 1900), (8, 3800)],
            "A second card gains 0.95×, 8 gain 3.8×: on several cards the step runs as a graph, "
            "which alone takes 2.1 times as long; each added card brings 0.47 of the first.",
        ),
        (
            [(1, 1000), (2, 700)],
            "A second card gains 0.70×: one alone is faster, and on several cards the step runs "
            "as a graph, which alone takes 2.9 times as long.",
        ),
        (
            [(1, 1000), (2, 2000)],
            "A second card gains 2×: each added card brings 1 of the first.",
        ),
    ],
)
def test_the_switch_of_program_is_told_as_a_loss_of_its_own(
    rates: list[tuple[int, float]], told: str
) -> None:
    assert sentence(series(rates, how="graph"), "card") == told


def test_at_another_batch_the_switch_is_told_without_a_number() -> None:
    told = sentence(series([(1, 1000), (2, 1400)], how="graph", batch=50), "card")
    assert "on several cards the step runs as a graph; each added" in told


def test_a_gain_that_was_cut_is_told() -> None:
    text = scale_out_text([series([(1, 1000), (2, 2600)], how="graph")], {"card": "card"})
    assert "A gain above the number of GPUs was cut to it" in " ".join(text.split())
    assert "was cut" not in scale_out_text([series([(1, 1000), (2, 1600)])], {"card": "card"})


def test_the_table_has_the_gain_its_range_and_the_money() -> None:
    found = series([(1, 1000), (2, 1600)], how="graph")
    text = scale_out_text([found], {"card": "card"}, width=120)
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
