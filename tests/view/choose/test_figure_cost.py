from __future__ import annotations

from dataclasses import replace

from tests.view import answers

from tfdyno.core.choose.hardware import PriceRange
from tfdyno.view.choose.figure_cost import cost_figure

ADVICE = answers.advice()


def key(basis: PriceRange | None = None) -> list[str]:
    advice = ADVICE
    if basis:
        picks = tuple(
            replace(one, candidate=replace(one.candidate, price_range=basis))
            for one in ADVICE.picks
        )
        advice = replace(ADVICE, picks=picks)
    figure = cost_figure(advice)
    assert figure
    return [one.text for one in figure.key]


def test_the_range_of_the_price_is_shaded_where_it_is_known() -> None:
    moved = PriceRange(basis="history", low_ratio=0.5, high_ratio=2.0, since="2026-01-01")
    assert key()[-1] == "shaded: the pick, 9 times in 10"
    assert key(PriceRange(basis="own price"))[-1] == "shaded: the pick, 9 times in 10"
    assert key(moved)[-1] == "shaded: the pick, 9 times in 10; upright: its prices"


def test_a_wider_price_draws_one_more_band() -> None:
    moved = PriceRange(basis="history", low_ratio=0.5, high_ratio=2.0, since="2026-01-01")
    picks = tuple(
        replace(one, candidate=replace(one.candidate, price_range=moved)) for one in ADVICE.picks
    )
    plain, wide = cost_figure(ADVICE), cost_figure(replace(ADVICE, picks=picks))
    assert plain
    assert wide
    bands = [figure.wide.count('stroke-width="16"') for figure in (plain, wide)]
    assert bands == [1, 2]
