"""Whether memory grows with the steps, and nothing else: the answer of a look at memory alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes
from tfdyno.core.doctor.finding import Evidence
from tfdyno.core.measure.bottleneck import StepDiagnosis
from tfdyno.rules.bottleneck.draft import Draft, bottleneck, evidence
from tfdyno.rules.bottleneck.leak import ACCOUNT, fits_growing, growing
from tfdyno.rules.bottleneck.retrace import traced_again
from tfdyno.rules.bottleneck.seen import look
from tfdyno.words.base.amounts import plural
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.measure.step_facts import MemoryCourse, StepFacts


def diagnose_growth(facts: StepFacts) -> StepDiagnosis:
    """Return what makes memory grow, the primary cause first; class ``healthy`` where nothing does.

    A function that is traced again and again keeps a graph each time: where that is what grows, it
    is the cause.

    Args:
        facts: Of a look at memory alone: times of steps, growth, retraces.

    Raises:
        UsageError: No steady step was seen.
    """
    seen = look(facts)
    drafts = list(growing(seen))
    explaining = {name for one in drafts for name in one.explained_by}
    drafts += (one for one in traced_again(seen) if one.cause in explaining)
    names = {one.cause for one in drafts}
    drafts = [one for one in drafts if not names.intersection(one.explained_by)]
    drafts += fits_growing(seen)
    found = tuple(bottleneck(one, facts.backend) for one in drafts or [_none(facts)])
    return StepDiagnosis(
        title=facts.title,
        step_s=seen.step_s,
        split_s={},
        compute_s={},
        primary=found[0],
        findings=found,
        notes=facts.notes,
    )


def bound_of(facts: StepFacts) -> MemoryCourse | None:
    """Return the host's memory by the closest account that there is; None: too few steps."""
    hosts = [one for one in facts.memory if one.where == "host"]
    return min(hosts, key=lambda one: one.counted_by != "allocator", default=None)


def _none(facts: StepFacts) -> Draft:
    """Tell no growth, as far as the steps tell."""
    host = bound_of(facts)
    if host is None:
        steps = plural(facts.steps_seen, "step")
        told = evidence("{steps} were seen, half of them steady", "steps", steps=steps)
        return Draft(cause="healthy.few_steps", evidence=(told,), values={"steps": steps})
    most = format_bytes(max(0.0, host.high_bytes_per_step))
    return Draft(
        cause="healthy.no_growth",
        evidence=(*_courses(facts), *_from_fit_to_fit(facts)),
        values={"most": most, "steps": f"{host.steps:,}", **_of_fits(facts)},
    )


def _of_fits(facts: StepFacts) -> dict[str, str]:
    fits = facts.fits
    if fits is None or not fits.is_told:
        return {}
    return {"fits": str(fits.fits), "most_fit": format_bytes(max(0.0, fits.high_bytes_per_fit))}


def _from_fit_to_fit(facts: StepFacts) -> Iterator[Evidence]:
    fits = facts.fits
    if fits is not None and fits.is_told:
        low, high = (format_bytes(each) for each in (fits.low_bytes_per_fit,
                                                     fits.high_bytes_per_fit))  # fmt: skip
        yield evidence(
            "between {low} and {high} a fit, in {fits} fits",
            ACCOUNT[fits.counted_by],
            low=low,
            high=high,
            fits=fits.fits,
        )


def _courses(facts: StepFacts) -> Iterator[Evidence]:
    for one in facts.memory:
        source = (
            say(ACCOUNT[one.counted_by])
            if one.where == "host"
            else say("memory of {where}", where=one.where)
        )
        low, high = (format_bytes(each) for each in (one.low_bytes_per_step,
                                                     one.high_bytes_per_step))  # fmt: skip
        text = say("between {low} and {high} a step, in {steps:,} steps",
                   low=low, high=high, steps=one.steps)  # fmt: skip
        yield Evidence(text=text, source=source)
