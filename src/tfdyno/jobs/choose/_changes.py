"""What would change the answer: each line computed from the ranking, none from a template."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.catalog.assumptions import assumed
from tfdyno.catalog.software import NEWEST, wheel_support
from tfdyno.core.choose.hardware import OWNED
from tfdyno.model.choose.whatif import (
    batch_limits,
    break_even_h,
    flip_price,
    paid_off_after_h,
    round_deadline_h,
    within_hours,
    without_budget,
    without_deadline,
    without_spot,
)
from tfdyno.words.choose import changes as change_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.choose.advice import Candidate, Change, Run
    from tfdyno.core.choose.hardware import Gpu

BOUGHT = 3
"""Cards to compare with renting: more lines would bury the answer."""
SHORTEST_BOUGHT_H = 1.0
"""Nobody buys a card for a run that is over sooner."""
MARKETS_BOUGHT = ("consumer", "workstation")


def changes_of(
    ranking: Sequence[Candidate],
    pick: Candidate | None,
    gpus: Mapping[str, Gpu],
    *,
    unheld: Candidate | None = None,
) -> tuple[Change, ...]:
    """Return the lines that apply to this ranking, most telling first.

    Args:
        ranking: All candidates.
        pick: The balanced one.
        gpus: All cards by slug.
        unheld: What the pick would be if no GPU waited for data; None: none does.
    """
    found: list[Change | None] = []
    if unheld and not (pick and change_words.choice(unheld) == change_words.choice(pick)):
        found.append(change_words.freed("input that keeps up", unheld))
    if pick:
        found += [_spot(ranking, pick), _sooner(ranking, pick)]
    if late := without_deadline(ranking):
        found.append(change_words.freed("no deadline", late))
    if dear := without_budget(ranking):
        found.append(change_words.freed("no budget", dear))
    if pick:
        limits = batch_limits(ranking, pick.estimate.batch_size)
        found.append(change_words.larger_batch(limits, pick))
        if flip := flip_price(ranking, pick):
            found.append(change_words.price_flip(flip[0], pick, flip[1]))
    found.append(_tensorflow(ranking, gpus))
    return tuple(change for change in found if change)


def buying_of(
    ranking: Sequence[Candidate], gpus: Mapping[str, Gpu], run: Run
) -> tuple[Change, ...]:
    """Return break-even hours of the cheapest rentable cards that a person can buy, and has not.

    A card that has not paid for itself while it lasts, by runs as often as somebody makes them, is
    left out, and so is every card for a run of under an hour, whatever is asked for renting. Where
    nobody said how long the run is, the card is taken to work all the time.
    """
    found: dict[str, Change] = {}
    settled = {one.gpu for one in ranking if one.offer and one.offer.provider == OWNED}
    for one in ranking:
        gpu = gpus.get(one.gpu)
        if one.verdict != "feasible" or not gpu or not _buyable(gpu) or one.gpu in settled:
            continue
        rent = _whole_card_rent(ranking, one.gpu)
        if not rent or len(found) == BOUGHT:
            continue
        hours = break_even_h(
            gpu,
            rent_usd_per_h=rent,
            electricity_usd_per_kwh=assumed().electricity_usd_per_kwh,
        )
        settled.add(one.gpu)
        is_said = run.length_source != "assumed"
        if is_said and one.hours.best < SHORTEST_BOUGHT_H:
            continue
        run_h = one.hours.best * one.count if is_said else 0.0
        until_h = paid_off_after_h(hours, run_h, run_every_h=assumed().run_every_h)
        if until_h <= assumed().card_life_h:
            runs = hours / run_h if run_h else 0.0
            found[one.gpu] = change_words.buying(gpu, hours, rent, runs)
    return tuple(found.values())


def _spot(ranking: Sequence[Candidate], pick: Candidate) -> Change | None:
    other = without_spot(ranking) if pick.spot else None
    return change_words.freed("no spot instances", other) if other else None


def _sooner(ranking: Sequence[Candidate], pick: Candidate) -> Change | None:
    deadline_h = round_deadline_h(pick.hours.best)
    other = within_hours(ranking, deadline_h)
    return change_words.sooner(deadline_h, other) if other else None


def _tensorflow(ranking: Sequence[Candidate], gpus: Mapping[str, Gpu]) -> Change | None:
    """Return the newest release, when it serves cards that had to leave."""
    names = [
        one.gpu_name
        for one in ranking
        if one.verdict == "cannot run"
        and one.gpu in gpus
        and wheel_support(gpus[one.gpu], NEWEST).verdict in ("native", "jit")
    ]
    return change_words.newer_tensorflow(list(dict.fromkeys(names)), NEWEST) if names else None


def _buyable(gpu: Gpu) -> bool:
    return gpu.market in MARKETS_BOUGHT and gpu.launch_price_usd > 0


def _whole_card_rent(ranking: Sequence[Candidate], gpu: str) -> float:
    """Return the cheapest price of one whole card that stays, in US$ per hour; 0.0: none."""
    return min(
        (
            one.offer.usd_per_h / one.count
            for one in ranking
            if one.gpu == gpu
            and one.offer
            and not one.spot
            and one.offer.usd_per_h > 0
            and one.offer.gpu_fraction >= 1.0
        ),
        default=0.0,
    )
