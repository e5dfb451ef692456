"""Offers are picked by card, provider and kind, and ordered by what was asked."""

from __future__ import annotations

import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, get_args

import pytest

from tfdyno.catalog.offers import COLUMNS
from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.lookup.offers import PricedOffer, SortKey, histories, list_offers

if TYPE_CHECKING:
    from pathlib import Path

TODAY = datetime.date(2026, 11, 21)


def key(one: PricedOffer, sort: SortKey) -> object:
    return {
        "price": one.usd_per_gpu_h, "machine": one.offer.usd_per_h, "age": one.age_days,
        "gpu": one.offer.gpu_slug, "provider": one.offer.provider,
    }[sort]  # fmt: skip


@pytest.mark.parametrize("sort", get_args(SortKey))
def test_offers_rise_by_what_they_are_sorted_by(sort: SortKey) -> None:
    found = list_offers(sort=sort, today=TODAY)
    assert all(key(a, sort) <= key(b, sort) for a, b in pairwise(found))  # type: ignore[operator]
    assert key(found[0], sort) != key(found[-1], sort)


def test_spot_and_on_demand_together_are_all() -> None:
    both = {one.offer.slug for one in list_offers(today=TODAY)}
    spot, other = (
        {one.offer.slug for one in list_offers(spot=kind, today=TODAY)} for kind in (True, False)
    )
    assert spot | other == both
    assert spot & other == set()
    assert spot


def test_cards_and_providers_are_each_a_list() -> None:
    found = list_offers(gpu="t4, a100-sxm4-80gb", provider="AWS, azure", today=TODAY)
    assert {one.offer.gpu_slug for one in found} <= {"t4", "a100-sxm4-80gb"}
    assert {one.offer.provider for one in found} == {"aws", "azure"}


def test_a_price_ages_and_says_when_it_is_old() -> None:
    now = {one.offer.slug: one for one in list_offers(gpu="t4", today=TODAY)}
    later = list_offers(gpu="t4", today=TODAY + datetime.timedelta(days=400))
    for one in later:
        assert one.age_days == now[one.offer.slug].age_days + 400
        assert one.staleness == "very old"
    for one in now.values():
        expected = "very old" if one.age_days > 365 else "stale" if one.age_days > 90 else ""
        assert one.staleness == expected


def test_the_price_is_of_one_whole_card() -> None:
    for one in list_offers(today=TODAY):
        cards = one.offer.gpu_count * one.offer.gpu_fraction
        assert one.usd_per_gpu_h * cards == pytest.approx(one.offer.usd_per_h)


def test_an_unknown_provider_is_told_with_those_there_are() -> None:
    with pytest.raises(
        UsageError, match=r"no offer of provider 'nobody'; choose from .*aws, azure"
    ):
        list_offers(provider="aws,nobody", today=TODAY)


def test_what_an_offer_cost_before_goes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFDYNO_DATA", str(tmp_path))
    row = "lambda,gpu_1x_a10,a10,1,30,200,all-regions,2.58,,2025-01,old page,day"
    (tmp_path / "price_history.csv").write_text(f"{','.join(COLUMNS)}\n{row}\nbroken\n")
    slug = "lambda/gpu_1x_a10/all-regions/on_demand"
    (offer,) = (one for one in list_offers(gpu="a10", today=TODAY) if one.offer.slug == slug)
    found = histories([offer])
    assert found.by_slug[slug].change_ratio == pytest.approx(-0.5)  # 1.29 now
    assert "a line of" in found.damage
