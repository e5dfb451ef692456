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
    gain_words,
    middle_half,
    then_words,
)
from tfdyno.words.base.amounts import capital, listed, percent, plural
from tfdyno.words.base.language import joined, say, say_later
from tfdyno.words.bench.measurement import seconds_words
from tfdyno.words.diagnose.steps import class_words
from tfdyno.words.diagnose.told import fact_words

if TYPE_CHECKING:
    from tfdyno.core.measure.bottleneck import Bottleneck, StepDiagnosis
    from tfdyno.core.measure.step_facts import TimelineFacts
    from tfdyno.view.diagnose.document import DiagnoseReport

PART_WORDS = {
    "input": say_later("waiting for data"),
    "host": say_later("Python and starting the device"),
    "callback": say_later("callbacks and metrics"),
    "copy": say_later("copying batches"),
    "compute": say_later("computing"),
    "communication": say_later("exchange between replicas"),
    "launch": say_later("gaps between operations"),
    "retrace": say_later("tracing functions again"),
    "validation": say_later("validation"),
    "checkpoint": say_later("checkpoints||part of a step"),
    "unseen": say_later("not looked into"),
}
_LITTLE_RATIO = 0.1
_KEEPS_UP_RATIO = 0.9
"""A pipeline that takes less than this of a step keeps up with it."""


def answer(told: DiagnoseReport) -> str:
    """Return what stands under the headline: the split in a sentence, and what a change brings."""
    diagnosis = told.proven.diagnosis
    parts = sorted(diagnosis.split_s.items(), key=lambda item: -item[1])
    shares = [
        say("{share} {part}", share=percent(s / diagnosis.step_s), part=say(PART_WORDS[name]))
        for name, s in parts
        if s >= 0.005 * diagnosis.step_s
    ]
    said = [
        say(
            "A step takes {step}: {shares}.",
            step=seconds_words(diagnosis.step_s),
            shares=listed(shares),
        )
    ]
    if told.kept and told.proven.after:
        after = told.proven.after
        said.append(
            say(
                "With what was kept it takes {step}. What is next then: {summary}",
                step=seconds_words(after.step_s),
                summary=_lower(after.primary.summary),
            )
        )
    return joined(said)


def _lower(text: str) -> str:
    return text if text[:2].isupper() else text[:1].lower() + text[1:]


def box(told: DiagnoseReport) -> list[tuple[str, str, str]]:
    """Return the numbers of the answer: name, number, and what stands small below it."""
    diagnosis, primary = told.proven.diagnosis, told.proven.diagnosis.primary
    half = middle_half(told.facts.step_s)
    spread = (
        say(
            "half of them {low} to {high}",
            low=seconds_words(half[0]),
            high=seconds_words(half[1]),
        )
        if half
        else ""
    )
    if half and not half[0] <= diagnosis.step_s <= half[1]:
        spread = say("with its share of the epoch")
    found = [(say("Step"), seconds_words(diagnosis.step_s), spread)]
    if told.samples_per_s:
        found.append((say("Throughput"), significant(told.samples_per_s), say("samples/s")))
    if primary.expected_gain and primary.asks_for_change:
        gain = primary.expected_gain
        then = then_words(gain, diagnosis.step_s)
        found.append((say("Expected of the change"), gain_words(gain), then))
    proof = told.proof_of(primary)
    if proof and proof.ratio:
        low, high = proof.interval
        sure = f"{low:.2f}–{high:.2f}, {proof.confidence_ratio:.0%}".replace("%", " %")
        state = say("kept" if proof.kept else "not kept")
        found.append(
            (
                say("Proven"),
                say("{ratio}x", ratio=f"{proof.ratio:.2f}"),
                say("; ").join((sure, state)),
            )
        )
    others = [each for each in told.proven.proofs if each.kept and each.cause != primary.cause]
    if others:  # each was measured on top of those before it
        ratio = math.prod(each.ratio for each in others)
        causes = say(", ").join(each.cause for each in others)
        found.append(
            (say("Proven of other changes"), say("{ratio}x", ratio=f"{ratio:.2f}"), causes)
        )
    return found


def step(told: DiagnoseReport) -> Finding:
    """Return the largest part of a step that is not computing, and what became of it."""
    before, after = told.proven.diagnosis, told.proven.after
    beside = {name: s for name, s in before.split_s.items() if name != "compute" and s > 0}
    computed = before.split_s.get("compute", 0.0) / before.step_s
    name = max(beside, key=lambda each: beside[each], default="")
    lead = say("All parts of one steady step; they add up to it.")
    if name == "unseen":
        return Finding(
            heading=say("What is in a step was not recorded"),
            lead=say("A record has times of whole steps, and of what an epoch costs beside them."),
        )
    if not name or computed >= 1.0 - _LITTLE_RATIO:
        return Finding(
            heading=say("{share} of a step is computing", share=percent(computed)), lead=lead
        )
    heading = say(
        "{share} of a step is {part}",
        share=percent(beside[name] / before.step_s),
        part=say(PART_WORDS[name]),
    )
    if after:
        now = after.split_s.get(name, 0.0) / after.step_s
        heading += say("; {share} with what was kept", share=percent(now))
        lead += say(
            " Both bars are looks at single trainings, one after the other: how much "
            "faster it is, the measurement in turns says."
        )
    elif told.kept:
        lead += say(" Of the step with what was kept only its whole time was measured.")
    return Finding(heading=heading, lead=lead)


_SEVERAL = frozenset({"gemm", "conv", "reduction", "random"})
"""Classes of operations whose words are in the plural."""


def computing(one: StepDiagnosis) -> Finding:
    """Return which class of operation leads."""
    total_s = sum(one.compute_s.values())
    name, seconds_s = max(one.compute_s.items(), key=lambda item: item[1])
    share = percent(seconds_s / total_s)
    return Finding(
        heading=say(
            "{name} take {share} of computing", name=capital(class_words(name)), share=share
        )
        if name in _SEVERAL
        else say("{name}: {share} of computing", name=capital(class_words(name)), share=share),
        lead=say(
            "{time} of a step, by class of operation, from a short profile.",
            time=seconds_words(one.split_s.get("compute", 0.0)),
        ),
    )


def course(timeline: TimelineFacts) -> Finding:
    """Tell whether single steps stand out, and what was in the longest."""
    usual = seconds_words(median(timeline.whole_s))
    count = plural(step_count(timeline), "step")
    kinds = list(dict.fromkeys(stall_kind(one) for one in
                               sorted(timeline.stalls, key=lambda one: -one.whole_s)))  # fmt: skip
    if timeline.what:
        count = say("{each} ({what})", each=count, what=fact_words(timeline.what))
    if not timeline.stalls:
        return Finding(
            heading=say("No step stands out"),
            lead=say("{count}, {usual} in the middle.", count=count, usual=usual),
        )
    longest = max(timeline.stalls, key=lambda one: one.whole_s)
    one = len(timeline.stalls) == 1
    return Finding(
        heading=say(
            "One step takes much longer: {kinds}"
            if one
            else "{count} steps take much longer: {kinds}",
            count=len(timeline.stalls),
            kinds=listed(list(map(say, kinds[:3]))),
        ),
        lead=say(
            "{count}, {usual} in the middle; {longest}. Those marked take more than half "
            "as long again as the one in the middle.",
            count=count,
            usual=usual,
            longest=stall_words(longest),
        ),
    )


def stages(one: StepDiagnosis, samples: int) -> Finding:
    """Return which stage is slowest, and whether the pipeline keeps up with the step."""
    slowest = max(told_stages(one.stages), key=lambda each: each.batch_s)
    share = percent(slowest.batch_s / one.batch_s)
    gives = rate_words(samples / one.batch_s)
    where = say(" ({place})", place=slowest.place) if slowest.place else ""
    if not one.held_s:
        heading = say("{stage} takes {share} of a batch", stage=slowest.title, share=share)
    elif one.batch_s < _KEEPS_UP_RATIO * one.held_s:
        heading = say("The pipeline is faster than the step that it feeds")
    else:
        heading = say(
            "The pipeline is slower than the step, and {stage} is {share} of it",
            stage=slowest.title,
            share=share,
        )
    needs = (
        say(" The step by itself could take {rate}.", rate=rate_words(samples / one.held_s))
        if (one.held_s)
        else ""
    )
    return Finding(
        heading=heading,
        lead=say(
            "With nothing but the pipeline running it gives {gives}, and the slowest "
            "stage is {stage}{where} with {share} of the time.{needs} What runs ahead of "
            "the step is hidden as far as it is faster and CPUs are left.",
            gives=gives,
            stage=slowest.title,
            where=where,
            share=share,
            needs=needs,
        ),
    )


def findings(told: DiagnoseReport) -> Finding:
    """Return how many changes there are, and how many are proven."""
    found = [one for one in told.proven.diagnosis.findings if one.asks_for_change]
    kept = [proof for proof in told.proven.proofs if proof.kept]
    if told.proven.diagnosis.primary.bottleneck_class == "unknown":
        return Finding(heading=say("What to change is not known"), lead=say("No known cause fits."))
    if not found:
        lead = say("No known change is expected to gain 10%.")
        if told.facts.source == "record":
            lead = say(
                "Nothing that was recorded asks for a change; the steps were not looked into."
            )
        return Finding(heading=say("Nothing to change was found"), lead=lead)
    heading = (
        say("One thing to change")
        if len(found) == 1
        else say("{count} things to change", count=len(found))
    )
    if told.proven.proofs:
        heading += say("; ") + _counted(len(told.proven.proofs), len(kept))
        lead = say(
            "Expected: by arithmetic from what was seen. Proven: both sides measured in "
            "turns in fresh processes, each on top of those kept before it."
        )
    else:
        lead = say(
            "Expected: by arithmetic from what was seen, the largest gain first. Nothing "
            "is proven before it was measured; what is a setting of a recipe can be "
            "measured at once."
        )
    if told.facts.source in ("profile", "record"):
        lead = say(
            "By arithmetic from what was recorded. Nothing can be proven without the script."
        )
    return Finding(heading=heading, lead=lead)


def _counted(tried: int, kept: int) -> str:
    if tried == 1:
        return say(
            "the one that was measured is kept" if kept else "the one that was measured is not kept"
        )
    if not kept:
        return say("of {tried} that were measured, none are kept", tried=tried)
    return say(
        "of {tried} that were measured, {kept} is kept"
        if kept == 1
        else "of {tried} that were measured, {kept} are kept",
        tried=tried,
        kept=kept,
    )


def row(one: Bottleneck, told: DiagnoseReport) -> dict[str, str]:
    """Return one line of the table of findings."""
    proof = told.proof_of(one)
    expected = one.expected_gain
    if proof and proof.ratio:
        low, high = proof.interval
        proven, small = say("{ratio}x", ratio=f"{proof.ratio:.2f}"), f"{low:.2f}–{high:.2f}"
    else:
        proven, small = "–", say("not measured")
    by_hand = say("by hand") if one.asks_for_change else ""
    return {
        "cause": one.cause,
        "place": one.place,
        "summary": one.summary,
        "expected": gain_words(expected) if expected else "–",
        "proven": proven,
        "range": small,
        "outcome": "" if proof is None else say("kept" if proof.kept else "not kept"),
        "is_kept": "yes" if proof and proof.kept else "",
        "why": proof.reason if proof and not proof.kept else "",
        "change": ", ".join(f"{name} = {value}" for name, value in one.settings.items()) or by_hand,
    }


def measured(told: DiagnoseReport) -> list[tuple[str, str]]:
    """Return how each number came about: what was looked at, for how long, and what was not."""
    facts, diagnosis, proofs = told.facts, told.proven.diagnosis, told.proven.proofs
    whose = {
        "run": say("of the script's own fit, after warm-up, with its data and callbacks"),
        "loop": say("of the script's own loop, after warm-up"),
        "profile": say("in the profile"),
        "record": say("that were recorded"),
    }[facts.source]
    rows = [
        (say("Steps"), say("{steps} {whose}", steps=plural(facts.steps_seen, "step"), whose=whose))
    ]
    if facts.held_s:
        rows.append(
            (
                say("The step alone"),
                say(
                    "{calls} of the same step on one batch that is held: {held}",
                    calls=plural(len(facts.held_s), "call"),
                    held=seconds_words(diagnosis.held_s),
                ),
            )
        )
    if diagnosis.batch_s and facts.input:
        count = plural(len(facts.input.batch_s), "batch", "batches")
        rows.append(
            (
                say("The pipeline alone"),
                say(
                    "{count}, one after the other, with nothing else running: {batch} each",
                    count=count,
                    batch=seconds_words(diagnosis.batch_s),
                ),
            )
        )
    if facts.operations:
        rows.append(
            (
                say("Operations"),
                say(
                    "{count:,.0f} a step, by a profile",
                    count=facts.operations.count_per_step,
                ),
            )
        )
    rows += card_rows(facts.cards)
    if proofs:
        runs = plural(max(one.runs for one in proofs), "fresh process", "fresh processes")
        proof = say(
            "up to {runs} a side in turns, A B B A; kept only if faster with 99 % "
            "certainty and if the losses of a few steps with the same seed agree",
            runs=runs,
        )
        rows.append((say("Proof"), proof))
    if told.proven.after:
        rows.append(
            (say("Look after"), say("the same look once more, with all settings that were kept"))
        )
    return rows
