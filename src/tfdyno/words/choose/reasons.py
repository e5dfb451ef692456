"""Why a pick was chosen and what there is to know about a row, each in a few words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.words.base.amounts import about_usd, dearer, of_gib, percent, short_hours
from tfdyno.words.base.language import say, say_later
from tfdyno.words.base.names import named
from tfdyno.words.choose.advice import card, cost_of, fed_words, fit_state, launch_words, no_way_out

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.choose.advice import Candidate, Run, Title

_DOUBTS = {
    "probably not": say_later("probably does not fit (memory not compiled): "),
    "may not": say_later("probably does not fit: "),
}
_HELD = {
    "compute": say_later("arithmetic"),
    "memory": say_later("memory traffic"),
    "launch": say_later("kernel launching"),
    "communication": say_later("communication"),
    "input": say_later("waiting for input"),
}


def pick_reason(title: Title, picks: Mapping[Title, Candidate], run: Run, *, choices: int) -> str:
    """Say why this one, compared with the pick next to it; ``choices`` were open to choose from."""
    chosen, cheapest, balanced = picks[title], picks["cheapest"], picks["balanced"]
    if title == "cheapest":
        return _cheapest_reason(chosen, picks["fastest"], run, choices)
    if title == "balanced":
        if chosen is cheapest:
            return say("nothing saves more time, in percent, than it costs")
        return say("{compared} than the cheapest", compared=_compared(chosen, cheapest))
    if chosen is balanced:
        return say("nothing finishes more than 3% sooner")
    return say("{compared} than the balanced one", compared=_compared(chosen, balanced))


def spared_reason(more: Candidate) -> str:
    """Return why the balanced pick is not the machine with more GPUs that arithmetic prefers."""
    return say("{more} would save less than 5 minutes", more=card(more))


def row_reason(candidate: Candidate, run: Run, *, stale: bool) -> str:
    """Return the one thing to know about a row: why it is out, or what holds it back."""
    estimate, verdict = candidate.estimate, candidate.verdict
    if verdict == "cannot run":
        return named(candidate.tensorflow.partition(": ")[2] or candidate.tensorflow)
    if verdict == "does not fit":
        used = of_gib(estimate.device_memory_bytes.best, estimate.usable_memory_bytes)
        most = estimate.max_batch_size
        doubt = say(_DOUBTS.get(fit_state(estimate), ""))
        way_out = (
            say("batch up to {most:,} fits", most=most)
            if most
            else no_way_out(most, say("no batch fits"))
        )
        return say("{doubt}needs {used}; {way_out}", doubt=doubt, used=used, way_out=way_out)
    notes = [_pace(candidate)]
    if verdict == "no offer":
        notes.insert(0, say("no price in the catalogue{launch}", launch=launch_words(candidate)))
    if verdict == "too late":
        notes.insert(
            0,
            say(
                "takes {hours}, the limit is {limit:g} h",
                hours=short_hours(candidate.hours.best),
                limit=run.deadline_h,
            ),
        )
    elif run.deadline_h and candidate.hours.high > run.deadline_h:
        notes.insert(0, say("may miss {hours:g} h", hours=run.deadline_h))
    if verdict == "too dear" and candidate.cost_usd:
        notes.insert(
            0,
            say(
                "costs {cost}, the limit is ${limit:,.10g}",
                cost=about_usd(candidate.cost_usd.best),
                limit=run.budget_usd,
            ),
        )
    elif run.budget_usd and candidate.cost_usd and candidate.cost_usd.high > run.budget_usd:
        notes.insert(0, say("may cost more than ${limit:,.10g}", limit=run.budget_usd))
    if estimate.fits == "may not":
        notes.insert(0, say("may not fit"))
    if stale and candidate.offer:
        notes.append(say("price of {month}", month=candidate.offer.priced_on[:7]))
    return say(", ").join(notes)


def _pace(candidate: Candidate) -> str:
    """Write ``memory traffic sets the pace``; where data come late, by how much."""
    bound = candidate.estimate.bound_by
    found = say("{held} sets the pace", held=say(_HELD[bound]) if bound in _HELD else bound)
    is_short = candidate.feeding is not None and candidate.feeding.is_short
    return say("{pace}, {fed}", pace=found, fed=fed_words(candidate)) if is_short else found


def _cheapest_reason(chosen: Candidate, fastest: Candidate, run: Run, choices: int) -> str:
    if choices == 1:
        return say("nothing else meets the conditions")
    limit = say(" within {hours:g} h", hours=run.deadline_h) if run.deadline_h else ""
    if chosen is fastest:
        return say(
            "lowest cost{limit} of {choices:,} choices, and nothing finishes more than 3% sooner",
            limit=limit,
            choices=choices,
        )
    return say("lowest cost{limit} of {choices:,} choices", limit=limit, choices=choices)


def _compared(one: Candidate, other: Candidate) -> str:
    """Write ``3% dearer, 42% less time``; equal costs and owned cards have words of their own."""
    ours, theirs = cost_of(one), cost_of(other)
    saved = say("{hours} less time", hours=percent(1.0 - one.hours.best / other.hours.best))
    if theirs <= 0.0 or ours / theirs >= 1.005:
        price = dearer(ours / theirs) if theirs > 0 else say("{ours} more", ours=about_usd(ours))
        return say("{price}, {saved}", price=price, saved=saved)
    return say("the same price, {saved}", saved=saved)
