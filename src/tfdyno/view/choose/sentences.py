"""Findings in words, made from the numbers: the headings and first paragraphs of the page."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.base.units import GIB
from tfdyno.view.choose.cards import (
    by_verdict,
    card_in_words,
    card_name,
    distinct_cards,
    fits,
    old_price,
    recommended,
    same,
    whole,
)
from tfdyno.view.choose.figures import term_shares
from tfdyno.view.draw.layers import OTHER
from tfdyno.words.base import amounts
from tfdyno.words.choose import kernels
from tfdyno.words.choose.advice import PROBABLY_NOT, copied_line, fit_state, price_words, tie_mark
from tfdyno.words.choose.hours import parts_line
from tfdyno.words.choose.prices import TIE, price_line
from tfdyno.words.memory.basis import proof, slower, standing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.choose.advice import Advice, Candidate, Run
    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.view.draw.layers import LayerGroup

_NEARLY_ALL_RATIO = 0.95
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
        return "No card of the catalogue was ranked, so there is no range to give."
    estimate = best.estimate
    if best.verdict != "feasible":
        return (
            f"Nearest to it comes {card_in_words(best)}: "
            f"{amounts.hours_range(best.hours)}, {best.verdict}. {_fits(estimate)}"
        )
    cost = f" and costs {amounts.usd_range(best.cost_usd)}" if best.cost_usd else ""
    if price := price_words(best):
        cost += f" at {price}"
    told = (
        f"Nine times in ten it takes {amounts.hours_range(best.hours)}{cost}.",
        parts_line(best),
        price_line(best, advice.ranking),
        _fits(estimate),
        _pace(estimate),
        copied_line(best),
        old_price(best, advice.made_on),
    )
    return " ".join(filter(None, told))


def _fits(estimate: Estimate) -> str:
    needed = amounts.gib(estimate.device_memory_bytes.best)
    sizes = f"{needed} of {amounts.gib(estimate.usable_memory_bytes)} GiB"
    share = estimate.device_memory_bytes.best / max(estimate.usable_memory_bytes, 1.0)
    if estimate.fits == "no":
        return f"It does not fit: it needs {sizes}."
    if estimate.fits == "may not":
        return f"It may not fit: it needs about {sizes}."
    if fit_state(estimate) == "probably not":
        return f"{PROBABLY_NOT}: it needs about {sizes}."
    if estimate.fits == "unverified":
        return f"By a first estimate it fits ({sizes}); the compiler has not confirmed it yet."
    room = "with room to spare" if share < 0.6 and not estimate.rematerialisation else "tightly"
    return f"It fits {room} ({sizes}{proof(estimate)})."


def _pace(estimate: Estimate) -> str:
    shares = term_shares(estimate)
    if not shares:
        return ""
    name = estimate.bound_by if estimate.bound_by in shares else max(shares, key=shares.__getitem__)
    share = amounts.percent(shares[name])
    other = ", not arithmetic," if name == "memory" else ""
    if name == "input":
        return f"Waiting for input sets its pace ({share} of a step)."
    return f"{amounts.capital(kernels.cause(name))}{other} sets its pace ({share} of a step)."


def cost(advice: Advice, front: Sequence[Candidate]) -> Finding:
    """Return what an hour saved costs along the frontier (fastest first)."""
    lead = "Down and to the left is better."
    if not front:
        if any(card.cost_usd for card in advice.ranking):
            return Finding("No offer finishes within the limits", f"Every point misses one. {lead}")
        return Finding("No candidate has a price", "So there is no cost to set against the hours.")
    fastest, cheapest = front[0], front[-1]
    if len(front) == 1:
        only = amounts.capital(card_in_words(fastest))
        return Finding(
            f"{only}{_spot(fastest)} is both the cheapest and the fastest",
            f"Every other offer costs more or takes longer, or both. {lead}",
        )
    joined = f"The line joins the {len(front)} offers that nothing else beats on both. {lead}"
    knee = next((card for card in front if same(card, recommended(advice) or fastest)), fastest)
    if same(knee, fastest):
        extra, saved = _trade(cheapest, fastest)
        return Finding(
            f"The fastest offer costs {amounts.about_usd(extra)} more than the cheapest "
            f"and saves {amounts.about_hours(saved)}",
            joined,
        )
    extra, saved = _trade(knee, fastest)
    rate = amounts.roughly_usd(extra / saved) if saved > 0 else "nothing"
    lead_from = (
        f"{amounts.capital(card_in_words(fastest))}{_spot(fastest)} saves "
        f"{amounts.about_hours(saved)} for {amounts.about_usd(extra)} more. "
    )
    return Finding(f"Past {card_in_words(knee)}, each hour saved costs {rate}", lead_from + joined)


def _trade(slow: Candidate, fast: Candidate) -> tuple[float, float]:
    """Return US$ more and hours less of ``fast`` against ``slow``."""
    slow_usd = slow.cost_usd.best if slow.cost_usd else 0.0
    fast_usd = fast.cost_usd.best if fast.cost_usd else 0.0
    return fast_usd - slow_usd, slow.hours.best - fast.hours.best


def _spot(candidate: Candidate) -> str:
    return " on spot" if candidate.spot else ""


def ranking(advice: Advice) -> Finding:
    """Return how many candidates keep the limits."""
    groups = by_verdict(advice)
    fine = len(groups.get("feasible", ()))
    priced = sum(len(groups.get(name, ())) for name in ("feasible", "too late", "too dear"))
    total = len(advice.ranking)
    rentable = max(total - len(groups.get("no offer", ())), fine)
    end = _limits(advice.run)
    lead = (
        "Sorted by cost of the whole run; the number of a row is its place among all rows, of "
        "which a group shows the first. The range under a number holds 9 times in 10, that under a "
        "cost as long as the price of an hour stays within its own."
    )
    if any(tie_mark(one) for one in advice.ranking):
        lead += f" {TIE}."
    if not total:
        return Finding("There is nothing to rank", "The catalogue has no card for this question.")
    if not fine:
        heading = f"None of {amounts.plural(rentable or total, 'candidate')} {end[1]}"
    elif fine == rentable:
        every = f"All {fine:,} candidates" if fine > 1 else "The one candidate"
        heading = f"{every} {end[0] if fine > 1 else end[1]}"
    else:
        heading = f"{fine:,} of {rentable:,} candidates {end[0] if fine > 1 else end[1]}"
    if priced and total > rentable:
        idle = total - rentable
        lead += f" {amounts.capital(amounts.plural(idle, 'more card'))} of the catalogue"
        lead += " has no offer." if idle == 1 else " have no offer."
    return Finding(heading, lead)


def _limits(run: Run) -> tuple[str, str]:
    """Return the limits as a verb phrase for many and for one."""
    limits = []
    if run.deadline_h:
        day = run.deadline_h == 24
        limits.append("within a day" if day else f"within {amounts.plain(run.deadline_h)} h")
    if run.budget_usd:
        limits.append(f"for at most ${run.budget_usd:,.0f}")
    if not limits:
        return "can do the run", "can do the run"
    return f"finish {' '.join(limits)}", f"finishes {' '.join(limits)}"


def memory(advice: Advice, best: Candidate, gpus: Mapping[str, Gpu]) -> Finding:
    """Say from which size of card on the step fits, and what takes the memory."""
    estimate = best.estimate
    needed = f"{amounts.gib(estimate.device_memory_bytes.best)} GiB"
    cards = [
        card for card in distinct_cards(advice, single=True) if card.gpu in gpus and whole(card)
    ]
    labels = [(gpus[card.gpu].memory_bytes, fits(card)) for card in cards]
    refused = [size for size, fine in labels if not fine]
    border = max(refused, default=0)
    above = [size for size, fine in labels if fine and size > border]
    if not labels or not any(fine for _, fine in labels):
        heading = f"The step needs {needed}: it fits on no card of the catalogue"
    elif not refused:
        heading = f"The step needs {needed}: it fits on every card of the catalogue"
    elif not above:
        number = sum(fine for _, fine in labels)
        heading = f"The step needs {needed}: it fits on {number} of {len(labels)} cards"
    else:
        heading = f"The step needs {needed}: it fits from {_label_gb(min(above))} up"
    said = (_memory_lead(estimate), slower(estimate), f"The figure is {standing(estimate)}.")
    return Finding(heading, " ".join(filter(None, said)))


def _label_gb(size_bytes: float) -> str:
    """Return size on the box: GiB where that is whole, else GB."""
    gib = size_bytes / GIB
    return f"{gib:.0f} GB" if abs(gib - round(gib)) < 0.02 else f"{size_bytes / 1e9:.0f} GB"


def _memory_lead(estimate: Estimate) -> str:
    parts = estimate.memory_parts_bytes
    total = sum(parts.values())
    if total <= 0:
        return "How it divides into parts is not known."
    growing = parts.get("activations", 0.0) + parts.get("inputs", 0.0)
    state = sum(parts.get(name, 0.0) for name in ("weights", "gradients", "optimizer"))
    if growing >= 0.5 * total:
        return (
            f"Activations and inputs take {amounts.percent(growing / total)} of it and grow with "
            "the batch. A larger card buys a larger batch and nothing else."
        )
    if state >= 0.5 * total:
        return (
            f"Weights, gradients and optimizer state take {amounts.percent(state / total)} of it. "
            "They do not shrink with the batch; a smaller optimizer state would help first."
        )
    return (
        f"Activations and inputs take {amounts.percent(growing / total)} of it and grow with the "
        f"batch; weights, gradients and optimizer state take {amounts.percent(state / total)}."
    )


def terms(cards: Sequence[Candidate]) -> Finding:
    """Return which cause holds back most cards, and which cards are the exception."""
    bounds = [(card, card.estimate.bound_by) for card in cards if card.estimate.bound_by]
    if not bounds:
        return Finding("What holds the cards back is not known", "No estimate names a cause.")
    counts = Counter(bound for _, bound in bounds).most_common()
    first, number = counts[0]
    lead = _terms_lead(first)
    subject = amounts.capital(kernels.cause(first))
    if number == len(bounds):
        every = "each of these cards" if number > 1 else card_name(bounds[0][0])
        return Finding(f"{subject} sets the pace on {every}", lead)
    odd = [f"{card_name(c)} ({kernels.cause(b)})" for c, b in bounds if b != first]
    if number > len(bounds) / 2:
        but = "one" if len(odd) == 1 else str(len(odd))
        exceptions = f"Otherwise: {amounts.listed(odd, most=4)}."
        return Finding(f"{subject} sets the pace on every card but {but}", f"{lead} {exceptions}")
    second, other = counts[1]
    heading = (
        f"{subject} holds back {number} of {len(bounds)} cards, {kernels.cause(second)} {other}"
    )
    return Finding(heading, "There is no one remedy: it depends on the card.")


def _terms_lead(cause: str) -> str:
    return {
        "memory": "Faster arithmetic would change little here; memory bandwidth decides.",
        "compute": "Cards with more arithmetic are faster here; memory bandwidth matters less.",
        "launch": "The kernels are too short: a larger batch would use the cards better.",
        "communication": "GPUs wait for each other; a faster link or a larger batch would help.",
        "input": "The GPUs outrun what feeds them; more CPU cores or cached data would help.",
    }.get(cause, "")


def roofline(estimate: Estimate) -> Finding:
    """Return which kind of kernel takes most of the step, and how near to the roof it runs."""
    total = sum(estimate.class_s.values())
    if total <= 0:
        return Finding("Which kernels take the time is not known", "No kernel was classified.")
    kind = max(estimate.class_s, key=lambda name: estimate.class_s[name])
    share = estimate.class_s[kind] / total
    arithmetic = estimate.class_s.get("convolution", 0.0) + estimate.class_s.get("gemm", 0.0)
    words = amounts.capital(kernels.kind(kind))
    verb = "take" if kind != "window" else "takes"
    lead = (
        "Each dot is a group of kernels, its area the share of the step. Dots on the slanted roof "
        "can only go faster with fewer bytes; dots far under the flat roof leave arithmetic idle. "
        f"The whole step reaches {amounts.percent(estimate.mfu_ratio)} of the card’s arithmetic."
    )
    if share < 0.4:
        return Finding(
            f"No kind of kernel dominates: {kernels.kind(kind)} {verb} {amounts.percent(share)}",
            lead,
        )
    if kind in ("convolution", "gemm"):
        return Finding(f"{words} {verb} {amounts.percent(share)} of the kernels’ time", lead)
    rest = f", arithmetic kernels {amounts.percent(arithmetic / total)}" if arithmetic else ""
    return Finding(f"{words} {verb} {amounts.percent(share)} of the kernels’ time{rest}", lead)


def coverage(estimate: Estimate) -> str:
    """Say how much of the kernels' time the roofline's groups cover; empty when nearly all."""
    total = sum(estimate.class_s.values())
    share = sum(point.time_s for point in estimate.roofline) / total if total else 1.0
    if not estimate.roofline or share > _NEARLY_ALL_RATIO:
        return ""
    return (
        f"The dots are the longest groups: {amounts.percent(share)} of the kernels’ time. "
        "The rest is in shorter ones."
    )


def layers(groups: Sequence[LayerGroup]) -> Finding:
    """Return the group of layers that takes most, set against its share of the arithmetic."""
    total_s = sum(group.step_s for group in groups)
    if total_s <= 0:
        return Finding("Where the time goes by layer is not known", "The program names no layers.")
    named = [group for group in groups if group.name != OTHER] or groups
    top = max(named, key=lambda group: group.step_s)
    share = top.step_s / total_s
    flops = sum(group.flops for group in groups)
    work = top.flops / flops if flops else 0.0
    lead = "Layers whose names begin alike are added up; shares are surer than milliseconds."
    if share < 1.6 / len(groups) and len(groups) > 2:
        return Finding(
            f"No layer dominates: {top.name} takes most with {amounts.percent(share)}", lead
        )
    heading = f"{top.name} takes {amounts.percent(share)} of the step"
    if flops and (share > 1.25 * work or share < 0.8 * work):
        only = "only " if share > 1.25 * work else ""
        heading += f" with {only}{amounts.percent(work)} of the arithmetic"
    return Finding(heading, lead)


def sure(advice: Advice, best: Candidate) -> Finding:
    """Return how wide the ranges are, and how many other offers lie within the pick's."""
    reach = amounts.interval_percent(best.estimate.step_s)
    ties = {slug for pick in advice.picks if same(pick.candidate, best) for slug in pick.ties}
    rivals = dict.fromkeys(card_name(one) for one in advice.ranking if one.slug in ties)
    rivals.pop(card_name(best), None)
    lead = (
        f"{_memory_certainty(best.estimate)} The cards share much of the error: what is wrong for "
        "one is mostly wrong for all, so their order is surer than the hours."
    )
    if rivals:
        lead += f" In cost, or in time, the pick is a tie with {amounts.listed([*rivals], most=3)}."
    return Finding(f"A step’s time is known to within {reach}, nine times in ten", lead)


def _memory_certainty(estimate: Estimate) -> str:
    """Say where the memory came from and how wide its range is."""
    needed = estimate.device_memory_bytes
    reach = amounts.interval_percent(needed)
    route = estimate.made_by.get("memory", "")
    if route == "quick":
        return (
            f"Memory comes from the traced graph, which was not compiled for this card ({reach})."
        )
    if route != "exact":
        return f"How memory was found is not recorded ({reach})."
    if needed.high <= _NARROW_RATIO * needed.best:
        return f"Memory is the plan of the compiler itself, so its range is narrow ({reach})."
    return (
        "Memory is the plan of the compiler itself; what TensorFlow’s allocator and libraries add "
        f"is less sure ({reach})."
    )
