"""The sentences of an answer: each is built from the numbers, none is fixed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import significant
from tfdyno.core.choose.hardware import OWNED
from tfdyno.words.base.amounts import (
    about_hours,
    about_step,
    about_usd,
    hours_range,
    listed,
    of_gib,
    plural,
    roughly_usd,
    usd_per_h_range,
    usd_range,
)
from tfdyno.words.base.language import ENGLISH, say, say_later, spoken
from tfdyno.words.base.names import named
from tfdyno.words.memory.basis import proof

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.advice import Advice, Candidate, Pick, Run
    from tfdyno.core.choose.estimate import Estimate

ONE_MILLION = 1_000_000
OPEN_SHOWN = 3
"""Cards whose fit is open that are named; more would bury the answer."""
PROBABLY_NOT = say_later("Probably does not fit (memory not compiled)")
_BRANDS = ("NVIDIA", "GeForce", "Tesla")
_SPOKEN = "AEFHILMNORSX"
"""Letters that are spoken with a vowel first: ``an RTX 4090``, but ``a Titan RTX``."""
_SMALL = {1: say_later("one"), 2: say_later("two"), 3: say_later("three"), 4: say_later("four")}


def brief(name: str) -> str:
    """Return a card's name as people say it: without the maker's brand in front."""
    for brand in _BRANDS:
        name = name.removeprefix(f"{brand} ")
    return name


def card(candidate: Candidate) -> str:
    """Return the hardware with its count or share: ``8 x H100``, ``H100``, ``1/6 of A10``."""
    share = candidate.offer.gpu_fraction if candidate.offer else 1.0
    if share < 1.0:
        name = brief(candidate.gpu_name)
        return say("1/{shares} of {name}", shares=round(1.0 / share), name=name)
    name = brief(candidate.gpu_name)
    return name if candidate.count == 1 else f"{candidate.count} x {name}"


def terms(candidate: Candidate) -> str:
    """Return how it is had: ``spot``, ``on demand``, ``owned``, ``contract``, ``no offer``."""
    return named(candidate.offer.way if candidate.offer else "no offer")


def purpose(run: Run, mode: str) -> str:
    """Return what the hours are for: ``for all 90 epochs``, ``for a million samples``."""
    if mode == "infer" or run.length_source == "assumed":
        return say("for {samples}", samples=_samples(run.samples))
    if run.fits > 1:
        return say("for all {count} calls of fit", count=run.fits)
    if run.epochs > 1:
        return say("for all {epochs:,} epochs", epochs=run.epochs)
    if run.epochs == 1:
        return say("for one epoch of {samples}", samples=_samples(run.samples))
    return say("for {steps}", steps=plural(run.steps, "step"))


def headline(ranking: Sequence[Candidate], balanced: Candidate | None, run: Run) -> str:
    """Write the answer as an order with two rounded numbers; or why there is none."""
    if balanced is None:
        return _no_answer(ranking, run)
    hours, what = about_hours(balanced.hours.best), purpose(run, balanced.estimate.mode)
    money = about_usd(balanced.cost_usd.best if balanced.cost_usd else 0.0)
    if balanced.offer and balanced.offer.provider == OWNED:
        return say(
            "Use your {card}: about {hours} and {money} of electricity {what}.",
            card=card(balanced),
            hours=hours,
            money=money,
            what=what,
        )
    if balanced.offer and balanced.offer.terms != "public":
        mine = say(
            "your {instance} ({card}, {terms})",
            instance=balanced.offer.instance,
            card=card(balanced),
            terms=named(balanced.offer.terms),
        )
        return say(
            "Use {mine}: about {hours} and {money} {what}.",
            mine=mine,
            hours=hours,
            money=money,
            what=what,
        )
    verb = say("Serve on") if balanced.estimate.mode == "infer" else say("Rent")
    way = say("on spot") if balanced.spot else say("on demand")
    return say(
        "{verb} {counted} {way}: about {hours} and {money} {what}.",
        verb=verb,
        counted=_counted(balanced),
        way=way,
        hours=hours,
        money=money,
        what=what,
    )


def range_line(candidate: Candidate) -> str:
    """Return the range of the answer and whether it fits, in one line."""
    money = say(", {cost}", cost=usd_range(candidate.cost_usd)) if candidate.cost_usd else ""
    if price := price_words(candidate):
        money += say(" at {price}", price=price)
    return say(
        "Nine times in ten: {hours}{money}. {fit}",
        hours=hours_range(candidate.hours),
        money=money,
        fit=fit_words(candidate),
    )


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
    return say(
        "With data in host memory a step of fit takes about {fed}, not {plain}, as "
        "each batch is copied first and Keras works between two; hours and cost "
        "are without that. prefetch_to_device at the end of the pipeline can hide "
        "the copy, steps_per_execution the rest.",
        fed=fed,
        plain=plain,
    )


def is_longer_in_fit(one: Estimate) -> bool:
    """Return whether what ``fit`` adds to a step is worth a word."""
    fed = one.fit_step_s
    return fed is not None and fed.best >= (1.0 + SHORT_COPY) * one.step_s.best


def memory_line(advice: Advice) -> str:
    """Say what stands behind the cards' memory; empty where the compiler does for every one."""
    if advice.open_fits:
        return say(
            "Whether the step fits {cards} is open: no compile has settled it.",
            cards=_open_cards(advice),
        )
    if advice.exact or not advice.picks:
        return ""
    return say("Where memory was not compiled it is estimated; its range leaves no pick open.")


def first_line(advice: Advice) -> str:
    """Say that an answer is not the last, and what is still being settled."""
    if advice.open_fits:
        what = say("whether the step fits {cards}", cards=_open_cards(advice))
    else:
        balanced = advice.pick("balanced")
        what = (
            say("the memory of {card}", card=card(balanced.candidate))
            if balanced
            else say("memory")
        )
    return say("First answer. Now being compiled: {what}. The final answer follows.", what=what)


def _open_cards(advice: Advice) -> str:
    return listed([brief(name) for name in advice.open_fits], most=OPEN_SHOWN)


def fit_state(estimate: Estimate) -> str:
    """Return the estimate's ``fits``; ``probably not`` where no compile confirms too large."""
    too_large = estimate.device_memory_bytes.best > estimate.usable_memory_bytes
    return "probably not" if estimate.fits == "unverified" and too_large else estimate.fits


def fit_words(candidate: Candidate) -> str:
    """Say whether the step fits, with the figures (``Fits: 10.5 of 79 GiB``)."""
    estimate = candidate.estimate
    used = of_gib(estimate.device_memory_bytes.best, estimate.usable_memory_bytes)
    return {
        "yes": say("Fits: {used}{proof}.", used=used, proof=proof(estimate)),
        "unverified": say("Should fit: {used}, not compiled yet.", used=used),
        "may not": say("May not fit: {used}.", used=used),
        "probably not": say(
            "{probably_not}: needs {used}.", probably_not=say(PROBABLY_NOT), used=used
        ),
        "no": say("Does not fit: needs {used}.", used=used),
    }[fit_state(estimate)]


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
    held = (
        say(" ({stages} in one thread)", stages=listed(list(given.thread_stages)))
        if given.thread_stages
        else ""
    )
    return say(
        "{vcpus} can feed {share} of {what}{held}",
        vcpus=plural(given.vcpus, "vCPU"),
        share=share,
        what=what,
        held=held,
    )


def feed_line(candidate: Candidate) -> str:
    """Say what the answer's CPUs do for it, with the figures behind; empty: not measured."""
    given = candidate.feeding
    if given is None:
        return ""
    low, high = significant(given.rate_per_s.low, 2), significant(given.rate_per_s.high, 2)
    rate = say(
        "{rate} samples/s ({low}–{high})",
        rate=significant(given.rate_per_s.best, 2),
        low=low,
        high=high,
    )
    needed = say("the {rate} that it takes", rate=significant(given.needed_per_s.best, 2))
    if given.is_short:
        return say(
            "Its {fed}: {rate} of {needed}.",
            fed=fed_words(candidate),
            rate=rate,
            needed=needed,
        )
    return say(
        "Its {vcpus} can feed it: {rate}, more than {needed}.",
        vcpus=plural(given.vcpus, "vCPU"),
        rate=rate,
        needed=needed,
    )


def tie_mark(candidate: Candidate) -> str:
    """Return the mark of a cost that is not told from the cheapest one's: ``≈``."""
    return "≈" if candidate.to_first and candidate.to_first.tied else ""


def a_card(name: str) -> str:
    """Write ``an A100``, ``a T4``, ``8 x A100``, ``1/6 of A10``."""
    if name[0].isdigit():
        return name
    if spoken() != ENGLISH:
        return say("one {card}", card=name)
    letters = name[1:2].isupper() or name[1:2].isdigit()
    return f"{'an' if name[0] in (_SPOKEN if letters else 'AEIOU') else 'a'} {name}"


def launch_words(candidate: Candidate) -> str:
    """Write `` (cost $1,599 when it came out)``, with the blank; empty: it is not known."""
    usd = candidate.launch_price_usd
    return say(" (cost ${price:,.0f} when it came out)", price=usd) if usd else ""


def no_way_out(most: int | None, none_fits: str) -> str:
    """Return what to do where no smaller batch is known to fit."""
    return say("the batch is part of the model") if most is None else none_fits


def marks(picks: Sequence[Pick], candidate: Candidate) -> list[str]:
    """Return the titles that a candidate holds."""
    return [pick.title for pick in picks if pick.candidate.slug == candidate.slug]


def _no_answer(ranking: Sequence[Candidate], run: Run) -> str:
    groups = {verdict: [c for c in ranking if c.verdict == verdict] for verdict in _ORDER}
    if groups["feasible"]:
        brink = groups["feasible"][0]
        return say(
            "Nothing surely fits: {card} comes nearest. {fit}",
            card=card(brink),
            fit=fit_words(brink),
        )
    if groups["too late"]:
        quickest = min(groups["too late"], key=lambda c: c.hours.best)
        return say(
            "Nothing finishes within {limit:g} h: the quickest is {card} with "
            "about {hours} and {cost}.",
            limit=run.deadline_h,
            card=card(quickest),
            hours=about_hours(quickest.hours.best),
            cost=about_usd(cost_of(quickest)),
        )
    if groups["too dear"]:
        cheapest = min(groups["too dear"], key=cost_of)
        return say(
            "Nothing stays within ${limit:,.10g}: the cheapest is {card} with {cost} and {hours}.",
            limit=run.budget_usd,
            card=card(cheapest),
            cost=roughly_usd(cost_of(cheapest)),
            hours=about_hours(cheapest.hours.best),
        )
    if groups["no offer"]:
        best = min(groups["no offer"], key=lambda c: c.hours.best)
        why = (
            say("Nothing is rented at the edge")
            if run.scenario == "edge"
            else say("No price is known")
        )
        return say(
            "{why}: the quickest that fits is {card} with about {hours} {purpose}.",
            why=why,
            card=card(best),
            hours=about_hours(best.hours.best),
            purpose=purpose(run, best.estimate.mode),
        )
    return _nothing_possible(groups["does not fit"], groups["cannot run"])


def _nothing_possible(too_small: list[Candidate], unsupported: list[Candidate]) -> str:
    if too_small:
        largest = max(too_small, key=lambda c: c.estimate.usable_memory_bytes)
        most = largest.estimate.max_batch_size
        way_out = (
            say("batch {most:,} would fit it", most=most)
            if most
            else no_way_out(most, say("not even one sample fits"))
        )
        need = of_gib(
            largest.estimate.device_memory_bytes.best, largest.estimate.usable_memory_bytes
        )
        return say(
            "No card is large enough: {card} would need {need}; {way_out}.",
            card=card(largest),
            need=need,
            way_out=way_out,
        )
    if unsupported:
        return say(
            "This TensorFlow runs on none of the cards asked: {tensorflow}.",
            tensorflow=unsupported[0].tensorflow,
        )
    return say("Nothing is left to choose from: no card and no offer meets the conditions.")


_ORDER = ("feasible", "too late", "too dear", "no offer", "does not fit", "cannot run")


def _counted(candidate: Candidate) -> str:
    if candidate.offer and candidate.offer.gpu_fraction < 1.0:
        return card(candidate)
    count = say(_SMALL[candidate.count]) if candidate.count in _SMALL else candidate.count
    return say("{count} {card}", count=count, card=brief(candidate.gpu_name))


def _samples(samples: int) -> str:
    return say("a million samples") if samples == ONE_MILLION else plural(samples, "sample")


def cost_of(candidate: Candidate) -> float:
    """Return the best estimate of the cost; infinite where no price is known."""
    return candidate.cost_usd.best if candidate.cost_usd else float("inf")
