from __future__ import annotations

from dataclasses import replace

import pytest
from tests.measurements import ENVIRONMENT, TASK, measurement

from tfdyno.core.choose.hardware import Offer
from tfdyno.core.measure.measurement import Card, Measurement
from tfdyno.model.choose.price_performance import price_performance

CARD = Card(name="NVIDIA L4", slug="l4")


def offer(slug: str, usd_per_h: float, **changes: object) -> Offer:
    base = Offer(
        slug=slug, provider=slug, instance="i", region="r", gpu_slug="l4", gpu_count=1,
        gpu_fraction=1.0, vcpus=4, ram_bytes=1e9, usd_per_h=usd_per_h, spot=False,
        priced_on="2026-10-01", date_precision="day", source="a price page",
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


def on(*cards: Card, replicas: int = 1, samples_per_epoch: int = 0) -> Measurement:
    task = replace(TASK, replica_count=replicas, samples_per_epoch=samples_per_epoch)
    device = "gpu" if cards else "cpu"
    environment = replace(ENVIRONMENT, device=device, cards=cards)  # type: ignore[arg-type]
    return measurement([[0.1]], task=task, environment=environment)


def test_the_cheapest_of_each_kind_is_priced_with_its_date() -> None:
    offers = [offer("dear", 2.0), offer("cheap", 0.5), offer("spot", 0.2, spot=True),
              offer("other", 0.1, gpu_slug="t4")]  # fmt: skip
    found = price_performance(on(CARD, samples_per_epoch=50_000), 100.0, offers).offers
    assert [one.offer.slug for one in found] == ["cheap", "spot"]
    # 100/s * 3600 s / 0.5 US$ = 720,000 samples per US$; an epoch of 50,000 costs 0.0694 US$
    assert found[0].samples_per_usd == pytest.approx(720_000.0)
    assert found[0].usd_per_epoch == pytest.approx(50_000 / 720_000)
    assert found[0].offer.priced_on == "2026-10-01"


def test_a_machine_is_paid_whole() -> None:
    # Three replicas: three machines of one card for 3.00 US$, or one of four for 2.40
    offers = [offer("one", 1.0), offer("four", 2.4, gpu_count=4)]
    (found,) = price_performance(on(CARD, CARD, CARD, replicas=3), 10.0, offers).offers
    assert (found.offer.slug, found.machines, found.usd_per_h) == ("four", 1, 2.4)
    (found,) = price_performance(on(CARD, replicas=5), 10.0, offers[1:]).offers
    assert (found.machines, found.usd_per_h) == (2, 4.8)


def test_an_epoch_of_unknown_length_has_no_price() -> None:
    assert price_performance(on(CARD), 1.0, [offer("a", 1.0)]).offers[0].usd_per_epoch is None


def test_a_share_of_a_card_is_not_that_card() -> None:
    found = price_performance(on(CARD), 1.0, [offer("half", 0.1, gpu_fraction=0.5)])
    assert found.reason == "The catalogue has no offer of l4."


@pytest.mark.parametrize(
    ("cards", "reason"),
    [
        ((), "It was measured without a GPU"),
        ((Card(name="Unknown 9"),), "Unknown 9: the catalogue has no row for it"),
        ((CARD, Card(name="T4", slug="t4")), "NVIDIA L4 + T4: the catalogue has no price"),
    ],
)
def test_without_a_price_the_reason_is_told(cards: tuple[Card, ...], reason: str) -> None:
    found = price_performance(on(*cards), 1.0, [offer("a", 1.0)])
    assert found.offers == ()
    assert found.reason.startswith(reason)
