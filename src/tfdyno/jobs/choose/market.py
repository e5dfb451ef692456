"""What can be had: offers and cards, chosen by the user's conditions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.catalog.gpus import all_gpus
from tfdyno.catalog.links import usual_in_a_node
from tfdyno.catalog.offers import (
    all_offers,
    check_providers,
    own_offers,
    rejected_in,
    staleness,
    today,
)
from tfdyno.catalog.price_history import former_prices, read_history
from tfdyno.catalog.price_ranges import PriceRecord, price_record
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.settings import MOST_REPLICAS
from tfdyno.core.choose.advice import Scenario
from tfdyno.core.choose.hardware import OWNED, UNKNOWN_PRICE_RANGE, VENDOR, Gpu, Offer, PriceRange
from tfdyno.words.base.language import say, say_later
from tfdyno.words.choose.offers import left_out_note

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SMALL_POWER_W = 75.0
"""What a PCIe slot gives: an edge box seldom has a power cable for a card."""


OWN_PRICE = "own-price"
"""In the place of the provider, where the user gave the price of a machine."""


class NoOfferError(UsageError):
    """Nothing meets the conditions, each of which is possible by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What the user rules out, and what the user has."""

    gpus: tuple[Gpu, ...] = ()
    """Only these; empty: the whole catalogue."""
    providers: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    """Only so many GPUs; empty: any number."""
    spot: bool | None = None
    """Only spot, only capacity that stays, or both."""
    owned: tuple[Gpu, ...] = ()
    offers_file: Path | None = None
    scenario: Scenario = "research"
    max_nodes: int = 1
    """Most machines of one offer that train together."""
    usd_per_h: float = 0.0
    """The user's own price of one machine with so many of the one card; 0: the offers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """A card, so many of it, and the offer it comes with (or none)."""

    gpu: Gpu
    count: int
    offer: Offer | None
    price_range: PriceRange = UNKNOWN_PRICE_RANGE


def supplies(conditions: Conditions) -> tuple[Supply, ...]:
    """Return everything that meets the conditions: offers first, then cards that nobody offers.

    Of one provider's like offers (card, count, share, spot or not) the cheapest region stays; the
    user's own price with that provider goes before all of them.

    Raises:
        UsageError: A provider is unknown, or the offers file is no price list.
        NoOfferError: Nothing is left.
    """
    if conditions.usd_per_h:
        return (_own_machine(conditions),)
    cards = _cards(conditions)
    rented = conditions.scenario != "edge"
    machines = _machines(conditions, cards) if rented else []
    chosen = _chosen_offers(conditions, cards, machines)
    offered = [*_cheapest_regions(chosen), *map(_owned, conditions.owned)]
    offered += _at_hand(conditions, cards)
    record = price_record(machines, former_prices())
    gpus = {gpu.slug: gpu for gpu in conditions.owned} | cards
    found = [_supply(offer, gpus[offer.gpu_slug], record) for offer in offered]
    priced = {supply.offer.gpu_slug for supply in found if supply.offer}
    if not conditions.providers and conditions.spot is None and conditions.counts in ((), (1,)):
        found += [
            Supply(gpu=gpu, count=1, offer=None) for gpu in cards.values() if gpu.slug not in priced
        ]
    if not found:
        raise NoOfferError(
            "no card and no offer meets the conditions",
            remedy="leave out --gpu, --provider, --count, --spot or --scenario",
        )
    return tuple(found)


def price_notes(conditions: Conditions) -> tuple[str, ...]:
    """Return what of the user's price list and of former prices does not count, a sentence each."""
    if conditions.usd_per_h:
        return ()
    file = conditions.offers_file
    reasons = [one.reasons for one in rejected_in(file)] if file else []
    damage = read_history().damage
    told = (
        say("Of the price history only what is sound counts: {damage}.", damage=damage)
        if damage
        else ""
    )
    return tuple(filter(None, (left_out_note(str(file), reasons), told)))


def scenario_words(scenario: Scenario) -> str:
    """Return what a scenario leaves in the choice, as a sentence without a full stop."""
    return say(_SCENARIOS[scenario], power_w=SMALL_POWER_W)


def is_stale(offer: Offer | None) -> bool:
    """Return whether a price is so old that the answer must say so."""
    if offer is None or offer.terms != "public":
        return False
    return staleness(offer, today()) == "very old"


_SCENARIOS: dict[Scenario, str] = {
    "develop": say_later("one GPU, no spot: an interruption loses a working session"),
    "research": say_later("every card and every offer, spot included"),
    "industrial": say_later("ECC memory, sold for running around the clock, no spot"),
    "edge": say_later("edge boards or at most {power_w:.0f} W, forward pass only, nothing rented"),
    "serve": say_later("capacity that stays (no spot), forward pass only"),
}


def _cards(conditions: Conditions) -> dict[str, Gpu]:
    named = conditions.gpus or tuple(gpu for gpu in all_gpus() if gpu.vendor.upper() == VENDOR)
    return {gpu.slug: gpu for gpu in named if _suits(gpu, conditions.scenario)}


def _suits(gpu: Gpu, scenario: Scenario) -> bool:
    if scenario == "industrial":
        return gpu.ecc and gpu.continuous_duty == "yes"
    if scenario == "edge":
        return gpu.market == "edge" or gpu.tdp_w <= SMALL_POWER_W
    return True


def _machines(conditions: Conditions, cards: dict[str, Gpu]) -> list[Offer]:
    """Return the offers of what is asked for, with any number of cards."""
    offers = all_offers(conditions.offers_file)
    known = {offer.provider for offer in (*offers, *own_offers())}
    check_providers(conditions.providers, known)
    spot = False if conditions.scenario in ("develop", "industrial", "serve") else conditions.spot
    return [
        offer
        for offer in offers
        if offer.gpu_slug in cards
        and (not conditions.providers or offer.provider in conditions.providers)
        and (spot is None or offer.spot == spot)
    ]


def _chosen_offers(
    conditions: Conditions, cards: dict[str, Gpu], machines: list[Offer]
) -> list[Offer]:
    """Return those with as many cards as asked for, of one machine or of several together."""
    counts = _counts(conditions)
    chosen = [*machines, *clusters_of(machines, cards, conditions.max_nodes)]
    return [offer for offer in chosen if not counts or offer.gpu_count in counts]


def _counts(conditions: Conditions) -> tuple[int, ...]:
    """Return the numbers of cards that are asked for; empty: any."""
    return conditions.counts or ((1,) if conditions.scenario == "develop" else ())


def _at_hand(conditions: Conditions, cards: dict[str, Gpu]) -> list[Offer]:
    """Return the user's machines that cost electricity alone, as far as they are asked for."""
    if conditions.providers and OWNED not in conditions.providers:
        return []
    counts = _counts(conditions)
    return [
        offer
        for offer in own_offers()
        if offer.provider == OWNED
        and offer.gpu_slug in cards
        and not conditions.spot
        and (not counts or offer.gpu_count in counts)
    ]


def clusters_of(offers: Iterable[Offer], cards: Mapping[str, Gpu], max_nodes: int) -> list[Offer]:
    """Return two machines of an offer, four and so on up to the most, as offers of their own.

    Only the largest machines with the card that the provider offers, up to those that nodes of it
    usually are: of smaller ones, a larger one is the nearer choice.
    """
    counts = sorted({max_nodes, *(2**power for power in range(1, max_nodes.bit_length()))} - {1})
    # Of the user's own machines there is one each.
    whole = [one for one in offers if one.gpu_fraction >= 1.0 and one.terms == "public"]
    largest: dict[tuple[str, str], int] = {}
    for offer in whole:
        if offer.gpu_count <= usual_in_a_node(cards[offer.gpu_slug]):
            key = offer.provider, offer.gpu_slug
            largest[key] = max(offer.gpu_count, largest.get(key, 0))
    return [
        replace(
            offer,
            slug=f"{offer.slug} x {count}",
            instance=f"{count} x {offer.instance}",
            gpu_count=offer.gpu_count * count,
            vcpus=offer.vcpus * count,
            ram_bytes=offer.ram_bytes * count,
            usd_per_h=offer.usd_per_h * count,
            nodes=count,
            available=None if offer.available is None else offer.available // count,
        )
        for offer in whole
        for count in counts
        if count <= max_nodes
        and offer.gpu_count * count <= MOST_REPLICAS
        and offer.gpu_count == largest.get((offer.provider, offer.gpu_slug))
    ]


def _cheapest_regions(offers: Iterable[Offer]) -> list[Offer]:
    kept: dict[tuple[object, ...], Offer] = {}
    for offer in offers:
        like = (offer.provider, offer.gpu_slug, offer.gpu_count, offer.nodes, offer.gpu_fraction,
                offer.spot)  # fmt: skip
        if like not in kept or _preference(offer) < _preference(kept[like]):
            kept[like] = offer
    return list(kept.values())


def _preference(offer: Offer) -> tuple[bool, float]:
    """Whether it is anybody's price, and the price: the user's own price goes first."""
    return offer.terms == "public", offer.usd_per_h


def _supply(offer: Offer, gpu: Gpu, record: PriceRecord) -> Supply:
    share = offer.gpu_fraction
    return Supply(
        gpu=gpu if share >= 1.0 else share_of(gpu, share),
        count=offer.gpu_count,
        offer=offer,
        price_range=record.range_of(offer),
    )


def share_of(gpu: Gpu, share: float) -> Gpu:
    """Make a virtual GPU of a card's share: of its memory, multiprocessors and bandwidth.

    A scheduler may lend more while the neighbours rest; only the share is sure.
    """
    return replace(
        gpu,
        sm_count=max(1, round(gpu.sm_count * share)),
        memory_bytes=int(gpu.memory_bytes * share),
        usable_memory_bytes=int(gpu.usable_memory_bytes * share),
        usable_memory_source=f"{share:.3g} of: {gpu.usable_memory_source}",
        memory_bytes_per_s=gpu.memory_bytes_per_s * share,
        l2_bytes=gpu.l2_bytes * share,
        tdp_w=gpu.tdp_w * share,
        nvlink_bytes_per_s=0.0,
        launch_price_usd=0.0,
    )


def _own_machine(conditions: Conditions) -> Supply:
    """Return the machine whose price the user gave; raises ``UsageError`` where it is not one."""
    counts = _counts(conditions)
    if len(conditions.gpus) != 1 or len(counts) > 1:
        raise UsageError(
            "--usd-per-h is the price of one machine",
            why="it has so many of one card",
            remedy="name them with --gpu and --count",
        )
    others = {
        "--provider": conditions.providers, "--owned": conditions.owned,
        "--spot": conditions.spot is not None, "--offers": conditions.offers_file,
        "--max-nodes": conditions.max_nodes > 1,
    }  # fmt: skip
    if any(others.values()):
        named = next(name for name, value in others.items() if value)
        raise UsageError(
            f"--usd-per-h contradicts {named}",
            why="it takes the place of all offers",
            remedy="leave one of them out",
        )
    (gpu,) = conditions.gpus
    if not _suits(gpu, conditions.scenario):
        raise NoOfferError(
            f"{gpu.name} does not meet the scenario {conditions.scenario}",
            why=scenario_words(conditions.scenario),
            remedy="name another card, or leave --scenario out",
        )
    count = counts[0] if counts else 1
    offer = replace(
        _owned(gpu),
        slug=f"{OWN_PRICE}/{count}x{gpu.slug}",
        provider=OWN_PRICE,
        instance=f"{count} x {gpu.name}",
        gpu_count=count,
        usd_per_h=conditions.usd_per_h,
        priced_on=today().isoformat(),
        date_precision="day",
        terms="public",
    )
    exact = PriceRange(basis="own price")
    return Supply(gpu=gpu, count=count, offer=offer, price_range=exact)


def _owned(gpu: Gpu) -> Offer:
    return Offer(
        slug=f"{OWNED}/{gpu.slug}",
        provider=OWNED,
        instance=gpu.name,
        region="",
        gpu_slug=gpu.slug,
        gpu_count=1,
        gpu_fraction=1.0,
        vcpus=0,
        ram_bytes=0.0,
        usd_per_h=0.0,
        spot=False,
        priced_on="",
        date_precision="",
        source="the user",
        terms=OWNED,
    )
