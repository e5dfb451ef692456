"""Memory that grows with the steps, or is nearly used up."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes, significant
from tfdyno.rules.bottleneck.draft import Draft, duration, evidence, percent, quoted
from tfdyno.rules.bottleneck.retrace import traced_anew
from tfdyno.rules.bottleneck.tables import limits
from tfdyno.words.base.language import say, say_later
from tfdyno.words.diagnose.told import fact_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.doctor.finding import Evidence
    from tfdyno.core.measure.step_facts import GrowthFacts, StepFacts
    from tfdyno.rules.bottleneck.seen import Seen

ACCOUNT = {
    "allocator": say_later("what the allocators have in use"),
    "kernel": say_later("memory of the process"),
}
"""What counted the memory of the host, in words."""
_PLACE = re.compile(r"[\w./-]+\.py:\d+")
_OF_TRACING = ("functions", "unknown")
"""Kinds of growth that tracing again makes by itself: it keeps every graph."""


_MEMORY = {
    "host": say_later("memory of the process"),
    "device": say_later("memory of the device"),
}


def growing(seen: Seen) -> Iterator[Draft]:
    """Find growth whose lower end is beyond its limit, one finding for each kind."""
    told_kinds = set()
    for one in sorted(leaking(seen.facts), key=lambda each: -each.low_bytes_per_step):
        if one.kind in told_kinds:
            continue
        told_kinds.add(one.kind)
        where = _MEMORY[one.where]
        told = [
            evidence(
                "grows by {best} a step, at least {low} (up to {limit} is left alone)",
                where,
                best=format_bytes(one.bytes_per_step),
                low=format_bytes(one.low_bytes_per_step),
                limit=format_bytes(limit_bytes(seen.facts, one)),
            )
        ]
        told += _until_full(seen, one)
        told += [quoted(text, "live objects") for text in one.suspects]
        places = [match[0] for text in one.suspects if (match := _PLACE.search(text))]
        yield Draft(
            cause=f"leak.{one.kind}",
            evidence=tuple(told),
            values={
                "growth": format_bytes(one.bytes_per_step),
                "suspect": fact_words(one.suspects[0]) if one.suspects else "",
            },
            place=places[0] if places else _traced_at(seen, one),
            explained_by=_explained_by(seen, one),
        )


def leaking(facts: StepFacts) -> tuple[GrowthFacts, ...]:
    """Return what grows beyond its limit."""
    return tuple(
        one
        for one in facts.growth
        if one.low_bytes_per_step >= limit_bytes(facts, one) and _is_even(one)
    )


def fits_growing(seen: Seen) -> Iterator[Draft]:
    """Find what stays in memory from one fit of the script to the next."""
    fits = seen.facts.fits
    if fits is None or not fits.is_told or fits.low_bytes_per_fit < limits()["leak_fit_bytes"]:
        return
    best, low, high = (
        format_bytes(each)
        for each in (fits.bytes_per_fit, fits.low_bytes_per_fit, fits.high_bytes_per_fit)
    )
    told = [
        evidence(
            "grows by {best} from one fit to the next ({low} to {high}), in {fits} fits",
            ACCOUNT[fits.counted_by],
            best=best,
            low=low,
            high=high,
            fits=fits.fits,
        )
    ]
    if fits.free_bytes:
        count = significant(fits.free_bytes / fits.bytes_per_fit, 2)
        free = format_bytes(fits.free_bytes, 2)
        told.append(
            evidence(
                "the {free} that are free are full after {count} fits",
                "at this rate",
                free=free,
                count=count,
            )
        )
    models = fits.models
    told.append(
        evidence(
            "{first} Keras models were alive at first, {last} at the end",
            "live objects",
            first=models[0],
            last=models[-1],
        )
    )
    is_kept = models[-1] - models[0] >= limits()["leak_kept_models"] * (len(models) - 1)
    values = {"growth": best, "fits": str(fits.fits)}
    yield Draft(cause="leak.kept_models" if is_kept else "leak.each_fit", evidence=tuple(told),
                values=values, place=fits.place)  # fmt: skip


def _is_even(one: GrowthFacts) -> bool:
    """Return whether it grows by as much in each step, where no object is known that does.

    A process whose allocator has not found its size yet grows as well, but less and less.
    """
    least = limits()["leak_even_ratio"] * one.bytes_per_step
    return one.kind != "unknown" or one.low_bytes_per_step >= least


def _until_full(seen: Seen, one: GrowthFacts) -> Iterator[Evidence]:
    """Yield when the host's or the card's memory is used up: at this rate, and at both ends."""
    facts = seen.facts
    free_bytes = facts.host.memory_free_bytes
    if one.where == "device":
        free_bytes = facts.memory_limit_bytes - facts.memory_used_bytes
    if free_bytes > 0 and min(one.low_bytes_per_step, one.bytes_per_step) > 0:
        rates = (max(one.high_bytes_per_step, one.bytes_per_step), one.bytes_per_step,
                 one.low_bytes_per_step)  # fmt: skip
        soon, best, late = (duration(free_bytes / rate * seen.step_s) for rate in rates)
        between = "" if soon == late else say(" ({soon} to {late})", soon=soon, late=late)
        yield evidence(
            "the {free} that are free are full after {best}{between}",
            "at this rate",
            free=format_bytes(free_bytes, 2),
            best=best,
            between=between,
        )


def limit_bytes(facts: StepFacts, one: GrowthFacts) -> float:
    """Return what a step may grow by: little where objects are known, more for the process."""
    if one.kind != "unknown" and one.suspects:
        return limits()["leak_known_bytes"]
    accounts = {each.counted_by for each in facts.memory if each.where == "host"}
    if one.where == "host" and "allocator" in accounts:
        return limits()["leak_counted_host_bytes"]
    return limits()[f"leak_unknown_{one.where}_bytes"]


def _traced_at(seen: Seen, one: GrowthFacts) -> str:
    """Return where functions are made anew, for growth by functions that nobody seems to hold."""
    if one.kind != "functions":
        return ""
    made = (each for each in seen.facts.retraces if traced_anew(each) == "retrace.new_function")
    return next((each.place for each in made if each.place), "")


def _explained_by(seen: Seen, one: GrowthFacts) -> tuple[str, ...]:
    """Find tracing that keeps graphs; but a new function for each call, kept, is the leak."""
    if one.kind not in _OF_TRACING:
        return ()
    causes = {traced_anew(each) for each in seen.facts.retraces}
    if one.kind == "unknown":  # the same bytes, seen again in the process as a whole
        causes |= {f"leak.{each.kind}" for each in seen.facts.growth if each.kind != "unknown"}
    elif one.suspects:
        causes.discard("retrace.new_function")
    return tuple(sorted(causes))


def near_limit(seen: Seen) -> Iterator[Draft]:
    """Find a run that the next larger batch, or a fragment that does not fit, would end."""
    facts = seen.facts
    if facts.memory_limit_bytes <= 0:
        return
    used = facts.memory_used_bytes / facts.memory_limit_bytes
    if used < limits()[f"near_limit_{facts.device}_ratio"]:
        return
    told = evidence(
        "{used} of {limit} are used",
        "memory||of the device or the host",
        used=format_bytes(facts.memory_used_bytes),
        limit=format_bytes(facts.memory_limit_bytes),
    )
    settings = {}
    is_even = facts.batch_size > 1 and facts.batch_size % 2 == 0
    if facts.device == "gpu" and is_even and facts.replica_count == 1:
        # Keras cannot accumulate under a strategy.
        settings = {"batch_size": str(facts.batch_size // 2), "accumulation": "2"}
    yield Draft(cause="memory_pressure.near_limit", evidence=(told,), settings=settings,
                values={"used": percent(used), "device": facts.device})  # fmt: skip


LEAK_RULES = (growing, fits_growing)
MEMORY_PRESSURE_RULES = (near_limit,)
