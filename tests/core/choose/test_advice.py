"""Rows of a ranking have names of their own, and picks are found by theirs."""

from __future__ import annotations

from dataclasses import replace

from tests.view import answers

ADVICE = answers.advice()


def test_no_two_rows_share_a_name() -> None:
    slugs = [row.slug for row in ADVICE.ranking]
    assert len(set(slugs)) == len(slugs)


def test_a_card_without_an_offer_cannot_be_taken_away() -> None:
    spot = next(row for row in ADVICE.ranking if row.offer and row.offer.spot)
    assert spot.spot
    assert not replace(spot, offer=None).spot
    assert replace(spot, offer=None).slug != spot.slug


def test_a_pick_is_found_by_its_title() -> None:
    found = ADVICE.pick("fastest")
    assert found is not None
    assert found.candidate.hours.best == min(
        row.hours.best for row in ADVICE.ranking if row.verdict == "feasible"
    )
    assert replace(ADVICE, picks=()).pick("fastest") is None
