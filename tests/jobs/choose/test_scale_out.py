from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.advice import estimate, exactly

from tfdyno.catalog.clusters import cluster_of
from tfdyno.catalog.gpus import find
from tfdyno.catalog.offers import all_offers
from tfdyno.core.choose.hardware import OWNED
from tfdyno.jobs.choose.scale_out import price_of, scale_outs, shardings, shared_price

if TYPE_CHECKING:
    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.sharding import Sharding

T4 = find("t4")


def of(count: int, mode: str = "train") -> Estimate:
    return estimate(gpu="t4", replicas=count, samples_per_s=exactly(1000.0 * count), mode=mode)


def test_one_number_of_replicas_is_no_series() -> None:
    assert scale_outs([T4], [of(4)], lambda _gpu: of(1), global_batch=False,
                      samples_per_epoch=0) == ()  # fmt: skip


@pytest.mark.parametrize(
    ("link", "told"), [("pcie3-x16", False), ("pcie3-x16-host", True), ("", False)]
)
def test_a_way_through_the_host_is_told(link: str, told: bool) -> None:
    found = [of(1), replace(of(4), link=link)]
    (series,) = scale_outs([T4], found, lambda _gpu: of(1), global_batch=False,
                           samples_per_epoch=0)  # fmt: skip
    assert series.through_host is told


def test_replicas_that_serve_are_no_series() -> None:
    found = [of(1, "infer"), of(4, "infer")]
    assert scale_outs([T4], found, lambda _gpu: of(1), global_batch=False,
                      samples_per_epoch=0) == ()  # fmt: skip


def test_one_card_alone_is_estimated_where_it_was_not_asked_for() -> None:
    asked: list[str] = []

    def alone(gpu: Gpu) -> Estimate:
        asked.append(gpu.slug)
        return of(1)

    (series,) = scale_outs([T4], [of(2), of(4)], alone, global_batch=True, samples_per_epoch=0)
    assert (asked, series.counts, series.holds) == (["t4"], (1, 2, 4), "global batch")


def test_the_price_is_the_cheapest_of_a_whole_card_that_stays() -> None:
    price = price_of(T4)
    assert price
    assert 0.0 < price.usd_per_h < 5.0
    assert "spot" not in price.offer
    assert price_of(find("k80")) is None


def test_the_price_of_an_offer_is_shared_by_its_cards_and_an_own_card_has_none() -> None:
    offer = next(one for one in all_offers(None) if one.gpu_count == 8)
    price = shared_price(offer)
    assert price
    assert (price.offer, price.usd_per_h) == (offer.slug, offer.usd_per_h / 8)
    assert shared_price(replace(offer, provider=OWNED)) is None


def test_the_price_that_was_given_counts() -> None:
    (series,) = scale_outs([T4], [of(1), of(2)], lambda _gpu: of(1), global_batch=False,
                           samples_per_epoch=0, price=lambda _gpu: None)  # fmt: skip
    assert series.price is None


def test_a_card_that_does_not_hold_the_batch_is_told_how_several_would() -> None:
    gib = 2.0**30
    parts = {"weights": gib, "optimizer": 9 * gib, "activations": 9 * gib, "context": gib}
    small = replace(
        of(1), fits="no", memory_parts_bytes=parts, device_memory_bytes=exactly(20 * gib),
        usable_memory_bytes=14.5 * gib,
    )  # fmt: skip
    (one,) = shardings([T4], [small, of(4)], cluster_of)
    assert (one.gpu, one.batch_size) == ("t4", 100)
    assert (one.plans[0].replicas, one.most_cards) == (2, 8)
    assert shardings([T4], [of(1)], cluster_of) == ()


def test_ways_over_several_cards_use_the_network_that_was_named() -> None:
    """Eight T4 one to a machine: what is sent takes as many times longer as the network is slow."""
    gib = 2.0**30
    parts = {"weights": 8 * gib, "gradients": 8 * gib, "optimizer": 16 * gib, "context": gib}
    small = replace(
        of(1), fits="no", memory_parts_bytes=parts, device_memory_bytes=exactly(33 * gib),
        usable_memory_bytes=14.5 * gib,
    )  # fmt: skip

    def over(network: str) -> tuple[Sharding, ...]:
        return shardings([T4], [small], lambda gpu, n: cluster_of(gpu, n, network=network,
                                                                  gpus_per_node=1))  # fmt: skip

    (slow,), (fast,) = over("eth-10g"), over("ib-hdr-200")
    assert slow.most_cards == fast.most_cards == 16
    times = [next(p.step_s.best for p in one.plans if p.kind == "all states")
             for one in (slow, fast)]  # fmt: skip
    assert times[0] > 10 * times[1]


def test_cards_that_do_not_fill_the_nodes_are_left_out_of_the_ways() -> None:
    gib = 2.0**30
    small = replace(
        of(1), fits="no", memory_parts_bytes={"weights": 20 * gib},
        device_memory_bytes=exactly(20 * gib), usable_memory_bytes=14.5 * gib,
    )  # fmt: skip
    (one,) = shardings([T4], [small], lambda gpu, n: cluster_of(gpu, n, network="eth-10g",
                                                                gpus_per_node=3))  # fmt: skip
    assert one.most_cards == 2
