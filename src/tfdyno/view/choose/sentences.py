"""Findings in words, made from the numbers: the headings and first paragraphs of the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.view.choose.cards import (
    by_verdict,
    card_in_words,
    card_name,
    old_price,
    recommended,
    same,
)
from tfdyno.view.choose.figures import term_shares
from tfdyno.words.base import amounts
from tfdyno.words.base.language import joined, say
from tfdyno.words.base.names import named
from tfdyno.words.choose import kernels
from tfdyno.words.choose.advice import PROBABLY_NOT, copied_line, fit_state, price_words, tie_mark
from tfdyno.words.choose.hours import parts_line
from tfdyno.words.choose.prices import TIE, price_line
from tfdyno.words.memory.basis import proof

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.advice import Advice, Candidate, Run
    from tfdyno.core.choose.estimate import Estimate

_NARROW_RATIO = 1.15
"""A range of memory up to this times the best estimate counts as narrow."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A heading that says what was found, and a paragraph that explains it."""

    heading: str
    lead: str


def answer(advice: Advice) -> str:
    """Return the range of the recommended candidate, whether it fits and what limits it."""
    best = recommended(advice)
    if best is None:
        return say("No card of the catalogue was ranked, so there is no range to give.")
    estimate = best.estimate
    if best.verdict != "feasible":
        return say(
            "Nearest to it comes {card}: {hours}, {verdict}. {fits}",
            card=card_in_words(best),
            hours=amounts.hours_range(best.hours),
            verdict=named(best.verdict),
            fits=_fits(estimate),
        )
    cost = say(" and costs {cost}", cost=amounts.usd_range(best.cost_usd)) if best.cost_usd else ""
    if price := price_words(best):
        cost += say(" at {price}", price=price)
    told = (
        say(
            "Nine times in ten it takes {hours}{cost}.",
            hours=amounts.hours_range(best.hours),
            cost=cost,
        ),
        parts_line(best),
        price_line(best, advice.ranking),
        _fits(estimate),
        _pace(estimate),
        copied_line(best),
        old_price(best, advice.made_on),
    )
    return joined(told)


def _fits(estimate: Estimate) -> str:
    needed = amounts.gib(estimate.device_memory_bytes.best)
    sizes = say(
        "{used} of {usable} GiB",
        used=needed,
        usable=amounts.gib(estimate.usable_memory_bytes),
    )
    share = estimate.device_memory_bytes.best / max(estimate.usable_memory_bytes, 1.0)
    if estimate.fits == "no":
        return say("It does not fit: it needs {sizes}.", sizes=sizes)
    if estimate.fits == "may not":
        return say("It may not fit: it needs about {sizes}.", sizes=sizes)
    if fit_state(estimate) == "probably not":
        return say(
            "{probably_not}: it needs about {sizes}.", probably_not=say(PROBABLY_NOT), sizes=sizes
        )
    if estimate.fits == "unverified":
        return say(
            "By a first estimate it fits ({sizes}); the compiler has not confirmed it yet.",
            sizes=sizes,
        )
    room = (
        say("with room to spare")
        if share < 0.6 and not estimate.rematerialisation
        else say("tightly")
    )
    return say("It fits {room} ({sizes}{proof}).", room=room, sizes=sizes, proof=proof(estimate))


def _pace(estimate: Estimate) -> str:
    shares = term_shares(estimate)
    if not shares:
        return ""
    name = estimate.bound_by if estimate.bound_by in shares else max(shares, key=shares.__getitem__)
    share = amounts.percent(shares[name])
    other = say(", not arithmetic,") if name == "memory" else ""
    if name == "input":
        return say("Waiting for input sets its pace ({share} of a step).", share=share)
    return say(
        "{cause}{other} sets its pace ({share} of a step).",
        cause=amounts.capital(kernels.cause(name)),
        other=other,
        share=share,
    )


def cost(advice: Advice, front: Sequence[Candidate]) -> Finding:
    """Return what an hour saved costs along the frontier (fastest first)."""
    lead = say("Down and to the left is better.")
    if not front:
        if any(card.cost_usd for card in advice.ranking):
            return Finding(
                say("No offer finishes within the limits"),
                joined((say("Every point misses one."), lead)),
            )
        return Finding(
            say("No candidate has a price"), say("So there is no cost to set against the hours.")
        )
    fastest, cheapest = front[0], front[-1]
    if len(front) == 1:
        only = amounts.capital(card_in_words(fastest))
        return Finding(
            say(
                "{card}{spot} is both the cheapest and the fastest", card=only, spot=_spot(fastest)
            ),
            joined((say("Every other offer costs more or takes longer, or both."), lead)),
        )
    line = say(
        "The line joins the {count} offers that nothing else beats on both.", count=len(front)
    )
    knee = next((card for card in front if same(card, recommended(advice) or fastest)), fastest)
    if same(knee, fastest):
        extra, saved = _trade(cheapest, fastest)
        return Finding(
            say(
                "The fastest offer costs {extra} more than the cheapest and saves {saved}",
                extra=amounts.about_usd(extra),
                saved=amounts.about_hours(saved),
            ),
            joined((line, lead)),
        )
    extra, saved = _trade(knee, fastest)
    rate = amounts.roughly_usd(extra / saved) if saved > 0 else say("nothing")
    lead_from = say(
        "{card}{spot} saves {saved} for {extra} more.",
        card=amounts.capital(card_in_words(fastest)),
        spot=_spot(fastest),
        saved=amounts.about_hours(saved),
        extra=amounts.about_usd(extra),
    )
    return Finding(
        say("Past {card}, each hour saved costs {rate}", card=card_in_words(knee), rate=rate),
        joined((lead_from, line, lead)),
    )


def _trade(slow: Candidate, fast: Candidate) -> tuple[float, float]:
    """Return US$ more and hours less of ``fast`` against ``slow``."""
    slow_usd = slow.cost_usd.best if slow.cost_usd else 0.0
    fast_usd = fast.cost_usd.best if fast.cost_usd else 0.0
    return fast_usd - slow_usd, slow.hours.best - fast.hours.best


def _spot(candidate: Candidate) -> str:
    return say(" on spot") if candidate.spot else ""


def ranking(advice: Advice) -> Finding:
    """Return how many candidates keep the limits."""
    groups = by_verdict(advice)
    fine = len(groups.get("feasible", ()))
    priced = sum(len(groups.get(name, ())) for name in ("feasible", "too late", "too dear"))
    total = len(advice.ranking)
    rentable = max(total - len(groups.get("no offer", ())), fine)
    end = _limits(advice.run)
    lead = say(
        "Sorted by cost of the whole run; the number of a row is its place among "
        "all rows, of which a group shows the first. The range under a number "
        "holds 9 times in 10, that under a cost as long as the price of an hour "
        "stays within its own."
    )
    if any(tie_mark(one) for one in advice.ranking):
        lead = joined((lead, say("{text}.", text=say(TIE))))
    if not total:
        return Finding(
            say("There is nothing to rank"), say("The catalogue has no card for this question.")
        )
    if not fine:
        heading = say(
            "None of {candidates} {end}",
            candidates=amounts.plural(rentable or total, "candidate"),
            end=end[1],
        )
    elif fine == rentable:
        every = say("All {fine:,} candidates", fine=fine) if fine > 1 else say("The one candidate")
        heading = say("{every} {end}", every=every, end=end[0] if fine > 1 else end[1])
    else:
        heading = say(
            "{fine:,} of {rentable:,} candidates {end}",
            fine=fine,
            rentable=rentable,
            end=end[0] if fine > 1 else end[1],
        )
    if priced and total > rentable:
        idle = total - rentable
        unoffered = say(
            "{cards} of the catalogue has no offer."
            if idle == 1
            else "{cards} of the catalogue have no offer.",
            cards=amounts.plural(idle, "more card"),
        )
        lead = joined((lead, amounts.capital(unoffered)))
    return Finding(heading, lead)


def _limits(run: Run) -> tuple[str, str]:
    """Return the limits as a verb phrase for many and for one."""
    limits = []
    if run.deadline_h:
        day = run.deadline_h == 24
        limits.append(
            say("within a day")
            if day
            else say("within {hours} h", hours=amounts.plain(run.deadline_h))
        )
    if run.budget_usd:
        limits.append(say("for at most ${budget:,.0f}", budget=run.budget_usd))
    if not limits:
        return say("can do the run"), say("can do the run")
    both = say(" ").join(limits)
    return say("finish {limits}", limits=both), say("finishes {limits}", limits=both)


def sure(advice: Advice, best: Candidate) -> Finding:
    """Return how wide the ranges are, and how many other offers lie within the pick's."""
    reach = amounts.interval_percent(best.estimate.step_s)
    ties = {slug for pick in advice.picks if same(pick.candidate, best) for slug in pick.ties}
    rivals = dict.fromkeys(card_name(one) for one in advice.ranking if one.slug in ties)
    rivals.pop(card_name(best), None)
    lead = say(
        "The cards share much of the error: what is wrong for one is mostly wrong "
        "for all, so their order is surer than the hours."
    )
    rival = ""
    if rivals:
        rival = say(
            "In cost, or in time, the pick is a tie with {cards}.",
            cards=amounts.listed([*rivals], most=3),
        )
    return Finding(
        say("A step’s time is known to within {reach}, nine times in ten", reach=reach),
        joined((_memory_certainty(best.estimate), lead, rival)),
    )


def _memory_certainty(estimate: Estimate) -> str:
    """Say where the memory came from and how wide its range is."""
    needed = estimate.device_memory_bytes
    reach = amounts.interval_percent(needed)
    route = estimate.made_by.get("memory", "")
    if route == "quick":
        return say(
            "Memory comes from the traced graph, which was not compiled for this card ({reach}).",
            reach=reach,
        )
    if route != "exact":
        return say("How memory was found is not recorded ({reach}).", reach=reach)
    if needed.high <= _NARROW_RATIO * needed.best:
        return say(
            "Memory is the plan of the compiler itself, so its range is narrow ({reach}).",
            reach=reach,
        )
    return say(
        "Memory is the plan of the compiler itself; what TensorFlow’s allocator "
        "and libraries add is less sure ({reach}).",
        reach=reach,
    )
