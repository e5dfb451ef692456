"""The sentences of an answer: each is built from the numbers, none is fixed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import significant
from tfdyno.core.choose.hardware import OWNED
from tfdyno.words.base.amounts import (
    about_hours,
    about_step,
    about_usd,
    dearer,
    hours_range,
    listed,
    of_gib,
    percent,
    plural,
    roughly_usd,
    short_hours,
    usd_per_h_range,
    usd_range,
)
from tfdyno.words.memory.basis import proof

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.choose.advice import Advice, Candidate, Pick, Run, Title
    from tfdyno.core.choose.estimate import Estimate

ONE_MILLION = 1_000_000
OPEN_SHOWN = 3
"""Cards whose fit is open that are named; more would bury the answer."""
PROBABLY_NOT = "Probably does not fit (memory not compiled)"
_BRANDS = ("NVIDIA", "GeForce", "Tesla")
_SPOKEN = "AEFHILMNORSX"
"""Letters that are spoken with a vowel first: ``an RTX 4090``, but ``a Titan RTX``."""
_SMALL = {1: "one", 2: "two", 3: "three", 4: "four"}


def brief(name: str) -> str:
    """Return a card's name as people say it: without the maker's brand in front."""
    for brand in _BRANDS:
        name = name.removeprefix(f"{brand} ")
    return name


def card(candidate: Candidate) -> str:
    """Return the hardware with its count or share: ``8 x H100``, ``H100``, ``1/6 of A10``."""
    share = candidate.offer.gpu_fraction if candidate.offer else 1.0
    if share < 1.0:
        return f"1/{round(1.0 / share)} of {brief(candidate.gpu_name)}"
    name = brief(candidate.gpu_name)
    return name if candidate.count == 1 else f"{candidate.count} x {name}"


def terms(candidate: Candidate) -> str:
    """Return how it is had: ``spot``, ``on demand``, ``owned``, ``contract``, ``no offer``."""
    return candidate.offer.way if candidate.offer else "no offer"


def purpose(run: Run, mode: str) -> str:
    """Return what the hours are for: ``for all 90 epochs``, ``for a million samples``."""
    if mode == "infer" or run.length_source == "assumed":
        return f"for {_samples(run.samples)}"
    if run.fits > 1:
        return f"for all {run.fits} calls of fit"
    if run.epochs > 1:
        return f"for all {run.epochs:,} epochs"
    if run.epochs == 1:
        return f"for one epoch of {_samples(run.samples)}"
    return f"for {plural(run.steps, 'step')}"


def headline(ranking: Sequence[Candidate], balanced: Candidate | None, run: Run) -> str:
    """Write the answer as an order with two rounded numbers; or why there is none."""
    if balanced is None:
        return _no_answer(ranking, run)
    hours, what = about_hours(balanced.hours.best), purpose(run, balanced.estimate.mode)
    money = about_usd(balanced.cost_usd.best if balanced.cost_usd else 0.0)
    if balanced.offer and balanced.offer.provider == OWNED:
        return f"Use your {card(balanced)}: about {hours} and {money} of electricity {what}."
    if balanced.offer and balanced.offer.terms != "public":
        mine = f"your {balanced.offer.instance} ({card(balanced)}, {balanced.offer.terms})"
        return f"Use {mine}: about {hours} and {money} {what}."
    verb = "Serve on" if balanced.estimate.mode == "infer" else "Rent"
    way = "on spot" if balanced.spot else "on demand"
    return f"{verb} {_counted(balanced)} {way}: about {hours} and {money} {what}."


def range_line(candidate: Candidate) -> str:
    """Return the range of the answer and whether it fits, in one line."""
    money = f", {usd_range(candidate.cost_usd)}" if candidate.cost_usd else ""
    if price := price_words(candidate):
        money += f" at {price}"
    return f"Nine times in ten: {hours_range(candidate.hours)}{money}. {fit_words(candidate)}"


def price_words(candidate: Candidate) -> str:
    """Write ``$0.80/h``, where its range is known ``$0.80–1.10/h``; empty: no hour is paid for."""
    offer, prices = candidate.offer, candidate.price_range
    if offer is None or offer.provider == OWNED:
        return ""
    return usd_per_h_range(offer.usd_per_h * prices.low_ratio, offer.usd_per_h * prices.high_ratio)


SHORT_COPY = 0.05
"""The share of a step below which copying a batch is not worth a word."""


def copied_line(candidate: Candidate) -> str:
    """Return what fit adds where data lie in the host's memory, of which the hours know nothing."""
    one = candidate.estimate
    if one.fit_step_s is None or not is_longer_in_fit(one):
        return ""
    fed, plain = about_step(one.fit_step_s)[0], about_step(one.step_s)[0]
    return (
        f"With data in host memory a step of fit takes about {fed}, not {plain}, as each batch is "
        "copied first and Keras works between two; hours and cost are without that. "
        "prefetch_to_device at the end of the pipeline can hide the copy, steps_per_execution the "
        "rest."
    )


def is_longer_in_fit(one: Estimate) -> bool:
    """Return whether what ``fit`` adds to a step is worth a word."""
    fed = one.fit_step_s
    return fed is not None and fed.best >= (1.0 + SHORT_COPY) * one.step_s.best


def memory_line(advice: Advice) -> str:
    """Say what stands behind the cards' memory; empty where the compiler does for every one."""
    if advice.open_fits:
        return f"Whether the step fits {_open_cards(advice)} is open: no compile has settled it."
    if advice.exact or not advice.picks:
        return ""
    return "Where memory was not compiled it is estimated; its range leaves no pick open."


def first_line(advice: Advice) -> str:
    """Say that an answer is not the last, and what is still being settled."""
    if advice.open_fits:
        what = f"whether the step fits {_open_cards(advice)}"
    else:
        balanced = advice.pick("balanced")
        what = f"the memory of {card(balanced.candidate)}" if balanced else "memory"
    return f"First answer. Now being compiled: {what}. The final answer follows."


def _open_cards(advice: Advice) -> str:
    names = [brief(name) for name in advice.open_fits]
    more = len(names) - OPEN_SHOWN
    return listed([*names[:OPEN_SHOWN], f"{more} more"] if more > 1 else names)


def fit_state(estimate: Estimate) -> str:
    """Return the estimate's ``fits``; ``probably not`` where no compile confirms too large."""
    too_large = estimate.device_memory_bytes.best > estimate.usable_memory_bytes
    return "probably not" if estimate.fits == "unverified" and too_large else estimate.fits


def fit_words(candidate: Candidate) -> str:
    """Say whether the step fits, with the figures (``Fits: 10.5 of 79 GiB``)."""
    estimate = candidate.estimate
    used = of_gib(estimate.device_memory_bytes.best, estimate.usable_memory_bytes)
    return {
        "yes": f"Fits: {used}{proof(estimate)}.",
        "unverified": f"Should fit: {used}, not compiled yet.",
        "may not": f"May not fit: {used}.",
        "probably not": f"{PROBABLY_NOT}: needs {used}.",
        "no": f"Does not fit: needs {used}.",
    }[fit_state(estimate)]


def pick_reason(title: Title, picks: Mapping[Title, Candidate], run: Run, *, choices: int) -> str:
    """Say why this one, compared with the pick next to it; ``choices`` were open to choose from."""
    chosen, cheapest, balanced = picks[title], picks["cheapest"], picks["balanced"]
    if title == "cheapest":
        return _cheapest_reason(chosen, picks["fastest"], run, choices)
    if title == "balanced":
        if chosen is cheapest:
            return "nothing saves more time, in percent, than it costs"
        return f"{_compared(chosen, cheapest)} than the cheapest"
    if chosen is balanced:
        return "nothing finishes more than 3% sooner"
    return f"{_compared(chosen, balanced)} than the balanced one"


def spared_reason(more: Candidate) -> str:
    """Return why the balanced pick is not the machine with more GPUs that arithmetic prefers."""
    return f"{card(more)} would save less than 5 minutes"


def fed_words(candidate: Candidate) -> str:
    """Write ``8 vCPUs can feed 0.62 of an A100``; empty where no input pipeline was measured.

    With the stages of one thread that hold them back, where more vCPUs would not help.
    """
    given = candidate.feeding
    if given is None:
        return ""
    share = significant(given.fed_ratio * candidate.count, 2)
    several = f"{candidate.count} {brief(candidate.gpu_name)}"
    what = several if candidate.count > 1 else a_card(card(candidate))
    held = f" ({listed(list(given.thread_stages))} in one thread)" if given.thread_stages else ""
    return f"{plural(given.vcpus, 'vCPU')} can feed {share} of {what}{held}"


def feed_line(candidate: Candidate) -> str:
    """Say what the answer's CPUs do for it, with the figures behind; empty: not measured."""
    given = candidate.feeding
    if given is None:
        return ""
    low, high = significant(given.rate_per_s.low, 2), significant(given.rate_per_s.high, 2)
    rate = f"{significant(given.rate_per_s.best, 2)} samples/s ({low}–{high})"
    needed = f"the {significant(given.needed_per_s.best, 2)} that it takes"
    if given.is_short:
        return f"Its {fed_words(candidate)}: {rate} of {needed}."
    return f"Its {plural(given.vcpus, 'vCPU')} can feed it: {rate}, more than {needed}."


def tie_mark(candidate: Candidate) -> str:
    """Return the mark of a cost that is not told from the cheapest one's: ``≈``."""
    return "≈" if candidate.to_first and candidate.to_first.tied else ""


def a_card(name: str) -> str:
    """Write ``an A100``, ``a T4``, ``8 x A100``, ``1/6 of A10``."""
    if name[0].isdigit():
        return name
    letters = name[1:2].isupper() or name[1:2].isdigit()
    return f"{'an' if name[0] in (_SPOKEN if letters else 'AEIOU') else 'a'} {name}"


def row_reason(candidate: Candidate, run: Run, *, stale: bool) -> str:
    """Return the one thing to know about a row: why it is out, or what holds it back."""
    estimate, verdict = candidate.estimate, candidate.verdict
    if verdict == "cannot run":
        return candidate.tensorflow.partition(": ")[2] or candidate.tensorflow
    if verdict == "does not fit":
        used = of_gib(estimate.device_memory_bytes.best, estimate.usable_memory_bytes)
        most = estimate.max_batch_size
        doubt = _DOUBTS.get(fit_state(estimate), "")
        way_out = f"batch up to {most:,} fits" if most else _no_way_out(most, "no batch fits")
        return f"{doubt}needs {used}; {way_out}"
    notes = [_pace(candidate)]
    if verdict == "no offer":
        notes.insert(0, f"no price in the catalogue{launch_words(candidate)}")
    if verdict == "too late":
        notes.insert(
            0, f"takes {short_hours(candidate.hours.best)}, the limit is {run.deadline_h:g} h"
        )
    elif run.deadline_h and candidate.hours.high > run.deadline_h:
        notes.insert(0, f"may miss {run.deadline_h:g} h")
    if verdict == "too dear" and candidate.cost_usd:
        notes.insert(
            0, f"costs {about_usd(candidate.cost_usd.best)}, the limit is ${run.budget_usd:,.10g}"
        )
    elif run.budget_usd and candidate.cost_usd and candidate.cost_usd.high > run.budget_usd:
        notes.insert(0, f"may cost more than ${run.budget_usd:,.10g}")
    if estimate.fits == "may not":
        notes.insert(0, "may not fit")
    if stale and candidate.offer:
        notes.append(f"price of {candidate.offer.priced_on[:7]}")
    return ", ".join(notes)


def launch_words(candidate: Candidate) -> str:
    """Write `` (cost $1,599 when it came out)``, with the blank; empty: it is not known."""
    usd = candidate.launch_price_usd
    return f" (cost ${usd:,.0f} when it came out)" if usd else ""


def _pace(candidate: Candidate) -> str:
    """Write ``memory traffic sets the pace``; where data come late, by how much."""
    bound = candidate.estimate.bound_by
    found = f"{_HELD.get(bound, bound)} sets the pace"
    is_short = candidate.feeding is not None and candidate.feeding.is_short
    return f"{found}, {fed_words(candidate)}" if is_short else found


def _no_way_out(most: int | None, none_fits: str) -> str:
    return "the batch is part of the model" if most is None else none_fits


def marks(picks: Sequence[Pick], candidate: Candidate) -> list[str]:
    """Return the titles that a candidate holds."""
    return [pick.title for pick in picks if pick.candidate.slug == candidate.slug]


_DOUBTS = {
    "probably not": "probably does not fit (memory not compiled): ",
    "may not": "probably does not fit: ",
}
_HELD = {
    "compute": "arithmetic",
    "memory": "memory traffic",
    "launch": "kernel launching",
    "communication": "communication",
    "input": "waiting for input",
}


def _cheapest_reason(chosen: Candidate, fastest: Candidate, run: Run, choices: int) -> str:
    if choices == 1:
        return "nothing else meets the conditions"
    limit = f" within {run.deadline_h:g} h" if run.deadline_h else ""
    if chosen is fastest:
        return (
            f"lowest cost{limit} of {choices:,} choices, and nothing finishes more than 3% sooner"
        )
    return f"lowest cost{limit} of {choices:,} choices"


def _compared(one: Candidate, other: Candidate) -> str:
    """Write ``3% dearer, 42% less time``; equal costs and owned cards have words of their own."""
    ours, theirs = _usd(one), _usd(other)
    saved = f"{percent(1.0 - one.hours.best / other.hours.best)} less time"
    if theirs <= 0.0 or ours / theirs >= 1.005:
        price = dearer(ours / theirs) if theirs > 0 else f"{about_usd(ours)} more"
        return f"{price}, {saved}"
    return f"the same price, {saved}"


def _no_answer(ranking: Sequence[Candidate], run: Run) -> str:
    groups = {verdict: [c for c in ranking if c.verdict == verdict] for verdict in _ORDER}
    if groups["feasible"]:
        brink = groups["feasible"][0]
        return f"Nothing surely fits: {card(brink)} comes nearest. {fit_words(brink)}"
    if groups["too late"]:
        quickest = min(groups["too late"], key=lambda c: c.hours.best)
        return (
            f"Nothing finishes within {run.deadline_h:g} h: the quickest is {card(quickest)} "
            f"with about {about_hours(quickest.hours.best)} and {about_usd(_usd(quickest))}."
        )
    if groups["too dear"]:
        cheapest = min(groups["too dear"], key=_usd)
        return (
            f"Nothing stays within ${run.budget_usd:,.10g}: the cheapest is {card(cheapest)} "
            f"with {roughly_usd(_usd(cheapest))} and {about_hours(cheapest.hours.best)}."
        )
    if groups["no offer"]:
        best = min(groups["no offer"], key=lambda c: c.hours.best)
        why = "Nothing is rented at the edge" if run.scenario == "edge" else "No price is known"
        return (
            f"{why}: the quickest that fits is {card(best)} "
            f"with about {about_hours(best.hours.best)} {purpose(run, best.estimate.mode)}."
        )
    return _nothing_possible(groups["does not fit"], groups["cannot run"])


def _nothing_possible(too_small: list[Candidate], unsupported: list[Candidate]) -> str:
    if too_small:
        largest = max(too_small, key=lambda c: c.estimate.usable_memory_bytes)
        most = largest.estimate.max_batch_size
        way_out = (
            f"batch {most:,} would fit it"
            if most
            else _no_way_out(most, "not even one sample fits")
        )
        need = of_gib(
            largest.estimate.device_memory_bytes.best, largest.estimate.usable_memory_bytes
        )
        return f"No card is large enough: {card(largest)} would need {need}; {way_out}."
    if unsupported:
        return f"This TensorFlow runs on none of the cards asked: {unsupported[0].tensorflow}."
    return "Nothing is left to choose from: no card and no offer meets the conditions."


_ORDER = ("feasible", "too late", "too dear", "no offer", "does not fit", "cannot run")


def _counted(candidate: Candidate) -> str:
    if candidate.offer and candidate.offer.gpu_fraction < 1.0:
        return card(candidate)
    return f"{_SMALL.get(candidate.count, str(candidate.count))} {brief(candidate.gpu_name)}"


def _samples(samples: int) -> str:
    return "a million samples" if samples == ONE_MILLION else plural(samples, "sample")


def _usd(candidate: Candidate) -> float:
    return candidate.cost_usd.best if candidate.cost_usd else float("inf")
