"""What would change the answer, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tfdyno.core.base.settings import MOST_SAMPLES
from tfdyno.core.base.units import significant
from tfdyno.core.choose.advice import Change
from tfdyno.words.base.amounts import about_usd, plural, short_hours, usd_per_h
from tfdyno.words.base.language import say
from tfdyno.words.base.names import named
from tfdyno.words.choose.advice import brief, card, terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.advice import Candidate
    from tfdyno.core.choose.hardware import Gpu

Condition = Literal["no spot instances", "input that keeps up", "no deadline", "no budget"]


def choice(candidate: Candidate) -> str:
    """Write ``4 x A100 on demand, 2.8 h, $14``."""
    money = say(", {cost}", cost=about_usd(candidate.cost_usd.best)) if candidate.cost_usd else ""
    return say(
        "{card} {terms}, {hours}{money}",
        card=card(candidate),
        terms=terms(candidate),
        hours=short_hours(candidate.hours.best),
        money=money,
    )


def freed(condition: Condition, candidate: Candidate) -> Change:
    """Say the change without something that was asked for, or that holds cards back."""
    return Change(condition=named(condition), consequence=choice(candidate))


def sooner(deadline_h: float, candidate: Candidate) -> Change:
    """Say the change with a deadline that the answer misses."""
    return Change(
        condition=say("done in {hours}", hours=short_hours(deadline_h)),
        consequence=choice(candidate),
    )


def price_flip(price_usd_per_h: float, pick: Candidate, other: Candidate) -> Change:
    """Say the change with another price of the picked card."""
    offer = pick.offer
    price = (
        say(
            "{price} in {month}",
            price=usd_per_h(offer.usd_per_h),
            month=offer.priced_on[:7],
        )
        if offer
        else say("no price")
    )
    listed = say("{card}: {price}", card=card(pick), price=price)
    return Change(
        condition=say(
            "{card} over {price}",
            card=card(pick),
            price=usd_per_h(price_usd_per_h),
        ),
        consequence=say(
            "{card} {terms} becomes cheaper ({listed})",
            card=card(other),
            terms=terms(other),
            listed=listed,
        ),
    )


def larger_batch(limits: Sequence[tuple[int, str]], pick: Candidate) -> Change | None:
    """Say the change with a larger batch: the first card to drop out, half of them, the pick.

    None without any, and where every card holds as many samples as are estimated.
    """
    if not limits or limits[0][0] == MOST_SAMPLES:
        return None
    first, half = limits[0], limits[(len(limits) - 1) // 2]
    own = pick.estimate.max_batch_size or 0
    parts = [say("{card} drops out", card=brief(first[1]))]
    if first[0] < half[0] < own:
        gone = sum(1 for limit, _ in limits if limit <= half[0])
        parts.append(
            say(
                "above {batch:,} {gone} of {cards}",
                batch=half[0],
                gone=gone,
                cards=plural(len(limits), "card"),
            )
        )
    if first[0] < own < MOST_SAMPLES:
        parts.append(say("above {batch:,} {card} too", batch=own, card=brief(pick.gpu_name)))
    return Change(
        condition=say("batch above {batch:,}", batch=first[0]),
        consequence=say("; ").join(parts),
    )


def newer_tensorflow(names: Sequence[str], release: str) -> Change:
    """Say the change with a TensorFlow that has code for the cards that had to leave."""
    what = brief(names[0]) if len(names) == 1 else plural(len(names), "card")
    return Change(
        condition=say("TensorFlow {release} or newer", release=release),
        consequence=say(
            "{what} joins the choice" if len(names) == 1 else "{what} join the choice", what=what
        ),
    )


def buying(gpu: Gpu, hours: float, rent_usd_per_h: float, runs: float) -> Change:
    """Say when a card at launch price has paid for itself, and what it asks of the computer.

    ``runs`` below 1 are not told.
    """
    rent = usd_per_h(rent_usd_per_h)
    condition = say("buy {card}", card=brief(gpu.name))
    price = f"${gpu.launch_price_usd:,.0f}"
    consequence = say(
        "at {price} pays for itself after about {hours} h of renting at {rent}",
        price=price,
        hours=significant(hours, 2),
        rent=rent,
    ) + (say(", {runs} runs like this one", runs=significant(runs, 2)) if runs >= 1 else "")
    return Change(condition=condition, consequence=say("; ").join([consequence, *_needs(gpu)]))


def _needs(gpu: Gpu) -> list[str]:
    needs = []
    if gpu.recommended_power_supply_w:
        needs.append(
            say(
                "needs a power supply of {power_w:.0f} W",
                power_w=gpu.recommended_power_supply_w,
            )
        )
    if not gpu.ecc:
        needs.append(say("no ECC memory"))
    if gpu.continuous_duty == "no":
        needs.append(say("not sold for running around the clock"))
    return needs
