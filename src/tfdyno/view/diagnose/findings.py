"""What a diagnosis found, in sentences: the answer, and what each part of its page shows."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING

from tfdyno.core.base.units import significant
from tfdyno.view.choose.sentences import Finding
from tfdyno.view.diagnose.course import (
    rate_words,
    stall_kind,
    stall_words,
    step_count,
    told_stages,
)
from tfdyno.view.diagnose.words import (
    card_rows,
    class_words,
    expected_words,
    gain_words,
    middle_half,
)
from tfdyno.words.base.amounts import capital, listed, percent, plural
from tfdyno.words.bench.measurement import seconds_words

if TYPE_CHECKING:
    from tfdyno.core.measure.bottleneck import Bottleneck, StepDiagnosis
    from tfdyno.core.measure.step_facts import TimelineFacts
    from tfdyno.view.diagnose.document import DiagnoseReport

PART_WORDS = {
    "input": "waiting for data", "host": "Python and starting the device",
    "callback": "callbacks and metrics", "copy": "copying batches", "compute": "computing",
    "communication": "exchange between replicas", "launch": "gaps between operations",
    "retrace": "tracing functions again", "validation": "validation",
    "checkpoint": "checkpoints", "unseen": "not looked into",
}  # fmt: skip
_LITTLE_RATIO = 0.1
_KEEPS_UP_RATIO = 0.9
"""A pipeline that takes less than this of a step keeps up with it."""


def answer(told: DiagnoseReport) -> str:
    """Return what stands under the headline: the split in a sentence, and what a change brings."""
    diagnosis = told.proven.diagnosis
    parts = sorted(diagnosis.split_s.items(), key=lambda item: -item[1])
    shares = [f"{percent(s / diagnosis.step_s)} {PART_WORDS[name]}" for name, s in parts
              if s >= 0.005 * diagnosis.step_s]  # fmt: skip
    said = [f"A step takes {seconds_words(diagnosis.step_s)}: {listed(shares)}."]
    if told.kept and told.proven.after:
        after = told.proven.after
        said.append(f"With what was kept it takes {seconds_words(after.step_s)}. "
                    f"What is next then: {_lower(after.primary.summary)}")  # fmt: skip
    return " ".join(said)


def _lower(text: str) -> str:
    return text if text[:2].isupper() else text[:1].lower() + text[1:]


def box(told: DiagnoseReport) -> list[tuple[str, str, str]]:
    """Return the numbers of the answer: name, number, and what stands small below it."""
    diagnosis, primary = told.proven.diagnosis, told.proven.diagnosis.primary
    half = middle_half(told.facts.step_s)
    spread = f"half of them {seconds_words(half[0])} to {seconds_words(half[1])}" if half else ""
    if half and not half[0] <= diagnosis.step_s <= half[1]:
        spread = "with its share of the epoch"
    found = [("Step", seconds_words(diagnosis.step_s), spread)]
    if told.samples_per_s:
        found.append(("Throughput", significant(told.samples_per_s), "samples/s"))
    if primary.expected_gain and primary.asks_for_change:
        gain, _, then = expected_words(primary.expected_gain, diagnosis.step_s).partition("   ")
        found.append(("Expected of the change", gain, then))
    proof = told.proof_of(primary)
    if proof and proof.ratio:
        low, high = proof.interval
        sure = f"{low:.2f}–{high:.2f}, {proof.confidence_ratio:.0%}".replace("%", " %")
        state = "kept" if proof.kept else "not kept"
        found.append(("Proven", f"{proof.ratio:.2f}x", f"{sure}; {state}"))
    others = [each for each in told.proven.proofs if each.kept and each.cause != primary.cause]
    if others:  # each was measured on top of those before it
        ratio = math.prod(each.ratio for each in others)
        causes = ", ".join(each.cause for each in others)
        found.append(("Proven of other changes", f"{ratio:.2f}x", causes))
    return found


def step(told: DiagnoseReport) -> Finding:
    """Return the largest part of a step that is not computing, and what became of it."""
    before, after = told.proven.diagnosis, told.proven.after
    beside = {name: s for name, s in before.split_s.items() if name != "compute" and s > 0}
    computed = before.split_s.get("compute", 0.0) / before.step_s
    name = max(beside, key=lambda each: beside[each], default="")
    lead = "All parts of one steady step; they add up to it."
    if name == "unseen":
        return Finding(heading="What is in a step was not recorded", lead="A record has times of "
                       "whole steps, and of what an epoch costs beside them.")  # fmt: skip
    if not name or computed >= 1.0 - _LITTLE_RATIO:
        return Finding(heading=f"{percent(computed)} of a step is computing", lead=lead)
    heading = f"{percent(beside[name] / before.step_s)} of a step is {PART_WORDS[name]}"
    if after:
        now = after.split_s.get(name, 0.0) / after.step_s
        heading += f"; {percent(now)} with what was kept"
        lead += (" Both bars are looks at single trainings, one after the other: how much faster "
                 "it is, the measurement in turns says.")  # fmt: skip
    elif told.kept:
        lead += " Of the step with what was kept only its whole time was measured."
    return Finding(heading=heading, lead=lead)


def computing(one: StepDiagnosis) -> Finding:
    """Return which class of operation leads."""
    total_s = sum(one.compute_s.values())
    name, seconds_s = max(one.compute_s.items(), key=lambda item: item[1])
    share = percent(seconds_s / total_s)
    return Finding(
        heading=f"{capital(class_words(name))} take {share} of computing"
        if class_words(name).endswith("s") else
        f"{capital(class_words(name))}: {share} of computing",
        lead=f"{seconds_words(one.split_s.get('compute', 0.0))} of a step, by class of operation, "
        "from a short profile.",
    )  # fmt: skip


def course(timeline: TimelineFacts) -> Finding:
    """Tell whether single steps stand out, and what was in the longest."""
    usual = seconds_words(median(timeline.whole_s))
    count = plural(step_count(timeline), "step")
    kinds = list(dict.fromkeys(stall_kind(one) for one in
                               sorted(timeline.stalls, key=lambda one: -one.whole_s)))  # fmt: skip
    count += f" ({timeline.what})" if timeline.what else ""
    if not timeline.stalls:
        return Finding(heading="No step stands out",
                       lead=f"{count}, {usual} in the middle.")  # fmt: skip
    longest = max(timeline.stalls, key=lambda one: one.whole_s)
    one = len(timeline.stalls) == 1
    heading = "One step takes" if one else f"{len(timeline.stalls)} steps take"
    return Finding(
        heading=f"{heading} much longer: {listed(list(kinds[:3]))}",
        lead=f"{count}, {usual} in the middle; {stall_words(longest)}. Those marked take "
        "more than half as long again as the one in the middle.",
    )


def stages(one: StepDiagnosis, samples: int) -> Finding:
    """Return which stage is slowest, and whether the pipeline keeps up with the step."""
    slowest = max(told_stages(one.stages), key=lambda each: each.batch_s)
    share = percent(slowest.batch_s / one.batch_s)
    gives = rate_words(samples / one.batch_s)
    where = f" ({slowest.place})" if slowest.place else ""
    if not one.held_s:
        heading = f"{slowest.title} takes {share} of a batch"
    elif one.batch_s < _KEEPS_UP_RATIO * one.held_s:
        heading = "The pipeline is faster than the step that it feeds"
    else:
        heading = f"The pipeline is slower than the step, and {slowest.title} is {share} of it"
    needs = f" The step by itself could take {rate_words(samples / one.held_s)}." if (
        one.held_s
    ) else ""  # fmt: skip
    return Finding(
        heading=heading,
        lead=f"With nothing but the pipeline running it gives {gives}, and the slowest stage is "
        f"{slowest.title}{where} with {share} of the time.{needs} What runs ahead of the step is "
        "hidden as far as it is faster and CPUs are left.",
    )


def findings(told: DiagnoseReport) -> Finding:
    """Return how many changes there are, and how many are proven."""
    found = [one for one in told.proven.diagnosis.findings if one.asks_for_change]
    kept = [proof for proof in told.proven.proofs if proof.kept]
    if told.proven.diagnosis.primary.bottleneck_class == "unknown":
        return Finding(heading="What to change is not known", lead="No known cause fits.")
    if not found:
        lead = "No known change is expected to gain 10%."
        if told.facts.source == "record":
            lead = "Nothing that was recorded asks for a change; the steps were not looked into."
        return Finding(heading="Nothing to change was found", lead=lead)
    heading = "One thing to change" if len(found) == 1 else f"{len(found)} things to change"
    if told.proven.proofs:
        heading += f"; {_counted(len(told.proven.proofs), len(kept))}"
        lead = ("Expected: by arithmetic from what was seen. Proven: both sides measured in turns "
                "in fresh processes, each on top of those kept before it.")  # fmt: skip
    else:
        lead = (
            "Expected: by arithmetic from what was seen, the largest gain first. Nothing is proven "
            "before it was measured; what is a setting of a recipe can be measured at once."
        )
    if told.facts.source in ("profile", "record"):
        lead = "By arithmetic from what was recorded. Nothing can be proven without the script."
    return Finding(heading=heading, lead=lead)


def _counted(tried: int, kept: int) -> str:
    if tried == 1:
        return f"the one that was measured is {'' if kept else 'not '}kept"
    return f"of {tried} that were measured, {kept or 'none'} {'is' if kept == 1 else 'are'} kept"


def row(one: Bottleneck, told: DiagnoseReport) -> dict[str, str]:
    """Return one line of the table of findings."""
    proof = told.proof_of(one)
    expected = one.expected_gain
    if proof and proof.ratio:
        low, high = proof.interval
        proven, small = f"{proof.ratio:.2f}x", f"{low:.2f}–{high:.2f}"
    else:
        proven, small = "–", "not measured"
    by_hand = "by hand" if one.asks_for_change else ""
    return {
        "cause": one.cause,
        "place": one.place,
        "summary": one.summary,
        "expected": gain_words(expected) if expected else "–",
        "proven": proven,
        "range": small,
        "outcome": "" if proof is None else "kept" if proof.kept else "not kept",
        "why": proof.reason if proof and not proof.kept else "",
        "change": ", ".join(f"{name} = {value}" for name, value in one.settings.items()) or by_hand,
    }


def measured(told: DiagnoseReport) -> list[tuple[str, str]]:
    """Return how each number came about: what was looked at, for how long, and what was not."""
    facts, diagnosis, proofs = told.facts, told.proven.diagnosis, told.proven.proofs
    whose = {
        "run": "of the script's own fit, after warm-up, with its data and callbacks",
        "loop": "of the script's own loop, after warm-up",
        "profile": "in the profile", "record": "that were recorded",
    }[facts.source]  # fmt: skip
    rows = [("Steps", f"{plural(facts.steps_seen, 'step')} {whose}")]
    if facts.held_s:
        rows.append(("The step alone", f"{plural(len(facts.held_s), 'call')} of the same step on "
                     f"one batch that is held: {seconds_words(diagnosis.held_s)}"))  # fmt: skip
    if diagnosis.batch_s and facts.input:
        count = plural(len(facts.input.batch_s), "batch", "batches")
        rows.append(("The pipeline alone", f"{count}, one after the other, with nothing else "
                     f"running: {seconds_words(diagnosis.batch_s)} each"))  # fmt: skip
    if facts.operations:
        rows.append(("Operations", f"{facts.operations.count_per_step:,.0f} a step, by a profile"))
    rows += card_rows(facts.cards)
    if proofs:
        runs = plural(max(one.runs for one in proofs), "fresh process", "fresh processes")
        proof = (
            f"up to {runs} a side in turns, A B B A; kept only if faster with 99 % certainty and "
            "if the losses of a few steps with the same seed agree"
        )
        rows.append(("Proof", proof))
    if told.proven.after:
        rows.append(("Look after", "the same look once more, with all settings that were kept"))
    return rows
