from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.advice import offer

from tfdyno.catalog.gpus import all_gpus, find
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.settings import MOST_REPLICAS
from tfdyno.jobs.choose.market import (
    Conditions,
    Supply,
    clusters_of,
    is_stale,
    price_notes,
    share_of,
    supplies,
)
from tfdyno.jobs.choose.scale_out import price_of
from tfdyno.jobs.lookup.check_data import show_data
from tfdyno.jobs.lookup.offers import list_offers

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.choose.advice import Scenario
    from tfdyno.core.choose.hardware import PriceRange

HEAD = (
    "provider,instance,gpu_slug,gpu_count,vcpus,ram_gb,region,price_per_hour_usd,"
    "spot_per_hour_usd,date,source,date_precision\n"
)


def test_every_nvidia_card_of_the_catalogue_has_a_row() -> None:
    found = {supply.gpu.slug for supply in supplies(Conditions())}
    assert found == {gpu.slug for gpu in all_gpus() if gpu.vendor.upper() == "NVIDIA"}


def test_of_like_offers_the_cheapest_region_stays(tmp_path: Path) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text(
        f"{HEAD}mine,box,t4,1,4,16,east,0.60,0,2026-11-01,a mail,day\n"
        "mine,box,t4,1,4,16,west,0.50,0.20,2026-11-01,a mail,day\n"
    )
    found = supplies(Conditions(offers_file=prices, providers=("mine",)))
    prices_seen = {(s.offer.region, s.offer.spot): s.offer.usd_per_h for s in found if s.offer}
    assert prices_seen == {("west", False): 0.5, ("west", True): 0.2}


def test_an_owned_card_is_an_offer_without_a_price() -> None:
    (supply,) = supplies(Conditions(gpus=(find("rtx-3090"),), owned=(find("rtx-3090"),),
                                    counts=(1,), spot=True))  # fmt: skip
    assert supply.offer is not None
    assert (supply.offer.provider, supply.offer.usd_per_h) == ("owned", 0.0)


def test_a_mig_slice_that_nobody_offers_is_listed_without_a_price() -> None:
    (supply,) = supplies(Conditions(gpus=(find("a100-sxm4-80gb:3g.40gb"),)))
    assert supply.offer is None


@pytest.mark.parametrize(
    ("scenario", "promise"),
    [
        ("develop", lambda s: s.count == 1 and not (s.offer and s.offer.spot)),
        ("industrial", lambda s: s.gpu.ecc and s.gpu.continuous_duty == "yes"),
        ("edge", lambda s: s.offer is None and (s.gpu.tdp_w <= 75 or s.gpu.market == "edge")),
        ("serve", lambda s: not (s.offer and s.offer.spot)),
    ],
)
def test_a_scenario_keeps_its_promise(
    scenario: Scenario, promise: Callable[[Supply], bool]
) -> None:
    found = supplies(Conditions(scenario=scenario))
    assert found
    assert all(promise(supply) for supply in found)


def test_a_board_for_the_edge_is_taken_whatever_it_draws() -> None:
    found = supplies(Conditions(scenario="edge"))
    boards = {supply.gpu.slug for supply in found if supply.gpu.market == "edge"}
    assert boards == {gpu.slug for gpu in all_gpus() if gpu.market == "edge"}
    assert max(find(slug).tdp_w for slug in boards) > 75


def test_a_share_of_a_card_has_its_share_of_everything() -> None:
    card = find("a10")
    part = share_of(card, 0.5)
    assert part.usable_memory_bytes == card.usable_memory_bytes // 2
    assert part.sm_count == card.sm_count // 2
    assert part.memory_bytes_per_s == card.memory_bytes_per_s / 2


def test_nothing_left_and_unknown_providers_are_told() -> None:
    with pytest.raises(UsageError, match="no card and no offer meets the conditions"):
        supplies(Conditions(gpus=(find("gtx-1080"),), counts=(16,)))
    with pytest.raises(UsageError, match="no offer of provider 'nobody'; choose from aws"):
        supplies(Conditions(providers=("nobody",)))


def test_an_unreadable_offers_file_is_told_with_its_line(tmp_path: Path) -> None:
    broken = tmp_path / "prices.csv"
    broken.write_text(f"{HEAD}mine,box,t4,one,4,16,east,0.60,0,2026-11-01,a mail,day\n")
    with pytest.raises(UsageError, match=r"prices\.csv.*gpu_count"):
        supplies(Conditions(offers_file=broken))


def test_owned_cards_never_have_a_stale_price() -> None:
    (supply,) = supplies(Conditions(gpus=(find("t4"),), owned=(find("t4"),), counts=(1,),
                                    providers=("aws",), spot=True))[-1:]  # fmt: skip
    assert supply.offer is not None
    assert supply.offer.provider == "owned"
    assert not is_stale(supply.offer)


def test_machines_together_are_offers_of_their_own() -> None:
    gpu, small = find("h100-sxm5-80gb"), offer("h100-sxm5-80gb", 2.0, gpu_count=4)
    whole = offer("h100-sxm5-80gb", 20.0, gpu_count=8, instance="box", vcpus=96)
    found = clusters_of([small, whole], {gpu.slug: gpu}, 6)
    assert [(one.instance, one.gpu_count, one.usd_per_h, one.vcpus) for one in found] == [
        ("2 x box", 16, 40.0, 192),
        ("4 x box", 32, 80.0, 384),
        ("6 x box", 48, 120.0, 576),
    ]
    assert clusters_of([whole], {gpu.slug: gpu}, 1) == []


def test_the_largest_machine_of_a_provider_stands_for_its_nodes() -> None:
    """Nobody sells more than four at this provider; machines of 16 A100 are no usual node."""
    gpu, cards = find("a100-sxm4-80gb"), {"a100-sxm4-80gb": find("a100-sxm4-80gb")}
    four = offer(gpu.slug, 8.0, gpu_count=4, provider="small", instance="four")
    two = offer(gpu.slug, 4.0, gpu_count=2, provider="small", instance="two")
    eight = offer(gpu.slug, 16.0, gpu_count=8, provider="large", instance="eight")
    sixteen = offer(gpu.slug, 32.0, gpu_count=16, provider="large", instance="sixteen")
    found = clusters_of([two, four, eight, sixteen], cards, 2)
    assert [(one.instance, one.gpu_count, one.nodes) for one in found] == [
        ("2 x four", 8, 2),
        ("2 x eight", 16, 2),
    ]


def test_machines_together_have_no_more_gpus_than_are_estimated() -> None:
    gpu = find("h100-sxm5-80gb")
    whole = offer(gpu.slug, 20.0, gpu_count=8)
    assert max(o.gpu_count for o in clusters_of([whole], {gpu.slug: gpu}, 1000)) <= MOST_REPLICAS


def test_a_cluster_beside_one_machine_with_as_many_cards_is_another_offer(tmp_path: Path) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text(
        f"{HEAD}mine,eight,a100-sxm4-80gb,8,4,16,east,16,0,2026-11-01,a mail,day\n"
        "mine,sixteen,a100-sxm4-80gb,16,4,16,east,30,0,2026-11-01,a mail,day\n"
    )
    found = supplies(Conditions(gpus=(find("a100-sxm4-80gb"),), offers_file=prices,
                                providers=("mine",), max_nodes=2))  # fmt: skip
    assert {(s.count, s.offer.nodes) for s in found if s.offer} == {(8, 1), (16, 1), (16, 2)}


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFDYNO_DATA", str(tmp_path))
    (tmp_path / "prices.toml").write_text(
        '[[machine]]\nname = "rack"\nterms = "reserved"\nprovider = "aws"\n'
        'gpu = "h100-sxm5-80gb"\ngpus = 8\nper_hour = 99.0\n'
        '[[machine]]\nname = "desk"\nterms = "owned"\ngpu = "rtx-3090"\ngpus = 2\n'
    )


@pytest.mark.usefixtures("own")
def test_an_own_price_goes_before_the_cheaper_one_of_the_same_provider() -> None:
    found = supplies(Conditions(providers=("aws",), spot=False, counts=(8,)))
    prices = [s.offer for s in found if s.offer and s.gpu.slug == "h100-sxm5-80gb"]
    assert [(one.instance, one.usd_per_h) for one in prices] == [("rack", 99.0)]
    others = supplies(Conditions(spot=False, counts=(8,)))
    assert {s.offer.provider for s in others if s.offer and s.gpu.slug == "h100-sxm5-80gb"} > {
        "aws"
    }


@pytest.mark.usefixtures("own")
def test_a_machine_at_hand_is_weighed_unless_others_are_asked_for() -> None:
    def at_hand(conditions: Conditions) -> list[tuple[str, int]]:
        found = supplies(conditions)
        return [
            (s.offer.instance, s.count) for s in found if s.offer and s.offer.provider == "owned"
        ]

    assert at_hand(Conditions()) == [("desk", 2)]
    assert at_hand(Conditions(providers=("aws",))) == []
    assert at_hand(Conditions(providers=("owned", "aws"))) == [("desk", 2)]
    assert at_hand(Conditions(gpus=(find("t4"),))) == []
    assert at_hand(Conditions(scenario="develop")) == []  # one GPU


@pytest.mark.usefixtures("own")
def test_of_an_own_machine_there_is_one() -> None:
    found = supplies(Conditions(providers=("aws",), max_nodes=4))
    assert {s.offer.nodes for s in found if s.offer and s.offer.terms != "public"} == {1}


@pytest.mark.usefixtures("own")
def test_own_prices_are_listed_first_and_named_among_the_data() -> None:
    listed = list_offers(gpu="h100-sxm5-80gb,rtx-3090")
    assert [one.offer.instance for one in listed][:2] == ["desk", "rack"]
    (table,) = (one for one in show_data() if one.file == "prices.toml")
    assert (table.rows, table.sources) == (2, 1)


@pytest.mark.usefixtures("own")
def test_the_price_of_a_card_is_the_own_one() -> None:
    price = price_of(find("h100-sxm5-80gb"))
    assert price is not None
    assert (price.offer, price.usd_per_h) == ("aws/rack//reserved", 99.0 / 8)


def test_your_own_price_takes_the_place_of_all_offers() -> None:
    (supply,) = supplies(Conditions(gpus=(find("l4"),), counts=(4,), usd_per_h=2.5))
    assert (supply.gpu.slug, supply.count) == ("l4", 4)
    assert supply.offer is not None
    assert (supply.offer.provider, supply.offer.gpu_count, supply.offer.usd_per_h) == (
        "own-price", 4, 2.5,
    )  # fmt: skip
    assert not is_stale(supply.offer)  # it is of today


@pytest.mark.parametrize(
    ("conditions", "sentence"),
    [
        (Conditions(usd_per_h=1.0), "is the price of one machine"),
        (Conditions(usd_per_h=1.0, gpus=(find("l4"), find("t4"))), "is the price of one machine"),
        (Conditions(usd_per_h=1.0, gpus=(find("l4"),), counts=(1, 2)), "price of one machine"),
        (Conditions(usd_per_h=1.0, gpus=(find("l4"),), spot=True), "contradicts --spot"),
        (Conditions(usd_per_h=1.0, gpus=(find("l4"),), owned=(find("t4"),)), "dicts --owned"),
        (Conditions(usd_per_h=1.0, gpus=(find("l4"),), providers=("aws",)), "dicts --provider"),
        (Conditions(usd_per_h=1.0, gpus=(find("l4"),), offers_file=Path("a")), "dicts --offers"),
        (Conditions(usd_per_h=1.0, gpus=(find("l4"),), max_nodes=2), "contradicts --max-nodes"),
        (
            Conditions(usd_per_h=1.0, gpus=(find("rtx-4090"),), scenario="industrial"),
            "does not meet the scenario industrial",
        ),
        (
            Conditions(usd_per_h=1.0, gpus=(find("h100-sxm5-80gb"),), scenario="edge"),
            "does not meet the scenario edge",
        ),
    ],
)
def test_a_price_is_of_one_machine(conditions: Conditions, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        supplies(conditions)


def test_a_supply_knows_how_far_its_price_ranges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFDYNO_DATA", str(tmp_path))
    (tmp_path / "price_history.csv").write_text(
        f"{HEAD}mine,box,t4,1,4,16,west,0.75,,2026-10-01,a mail,day\n"
    )
    (tmp_path / "prices.toml").write_text(
        '[[machine]]\nname = "rack"\nterms = "contract"\ngpu = "t4"\nper_hour = 0.3\n'
    )
    prices = tmp_path / "prices.csv"
    prices.write_text(
        f"{HEAD}mine,box,t4,1,4,16,east,0.60,0.30,2026-11-01,a mail,day\n"
        "mine,box,t4,1,4,16,west,0.50,0.20,2026-11-01,a mail,day\n"
    )
    found = supplies(Conditions(offers_file=prices, gpus=(find("t4"),), owned=(find("t4"),)))
    known = {
        (one.offer.provider, one.offer.spot): (
            one.price_range.basis,
            round(one.price_range.high_ratio, 9),
        )
        for one in found
        if one.offer and one.offer.provider in ("mine", "own", "owned", "runpod")
    }
    assert known == {
        ("mine", False): ("history", 1.5),  # 0.75 once, 0.50 now
        ("mine", True): ("regions", 1.5),  # 0.30 in the east
        ("own", False): ("own price", 1.0),
        ("owned", False): ("electricity", 1.0),
    }
    asked = supplies(Conditions(gpus=(find("t4"),), usd_per_h=0.4))
    assert [one.price_range.basis for one in asked] == ["own price"]


def test_a_damaged_price_history_is_noted_and_the_rest_of_it_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFDYNO_DATA", str(tmp_path))
    (tmp_path / "price_history.csv").write_text(
        f"{HEAD}me,box,t4,1,4,16,here,1.0,,2026-10-01,me,day\nme,box,t4,1,4\n"
        "me,box,t4,1,4,16,here,0,,2026-10-02,me,day\n"
    )
    prices = tmp_path / "mine.csv"
    prices.write_text(f"{HEAD}me,box,t4,1,4,16,here,0.5,,2026-11-01,me,day\n")
    asked = Conditions(offers_file=prices, providers=("me",))
    (note,) = price_notes(asked)
    assert note.startswith("Of the price history only what is sound counts: 2 lines of ")
    (one,) = supplies(asked)
    assert (one.price_range.since, one.price_range.high_ratio) == ("2026-10-01", 2.0)
    assert price_notes(Conditions(gpus=(find("t4"),), usd_per_h=1.0)) == ()


def test_the_price_range_of_a_cluster_does_not_hang_on_how_many_cards_are_asked_for() -> None:
    def ranges(*counts: int) -> dict[str, PriceRange]:
        found = supplies(Conditions(counts=counts, max_nodes=2))
        return {
            one.offer.slug: one.price_range for one in found if one.offer and one.offer.nodes > 1
        }

    few = ranges(16)
    assert "regions" in {one.basis for one in few.values()}
    assert few.items() <= ranges().items()
