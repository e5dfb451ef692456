"""All findings of one look at a training, and the primary one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.measure.bottleneck import SPLIT_PARTS, Bottleneck, StageSpeed, StepDiagnosis
from tfdyno.rules.bottleneck.callback import CALLBACK_RULES
from tfdyno.rules.bottleneck.card import CARD_RULES
from tfdyno.rules.bottleneck.communication import COMMUNICATION_RULES
from tfdyno.rules.bottleneck.compute import COMPUTE_RULES, PRECISION_RULES
from tfdyno.rules.bottleneck.draft import Draft, Rule, bottleneck, duration, evidence, percent
from tfdyno.rules.bottleneck.host import HOST_RULES
from tfdyno.rules.bottleneck.input_flow import INPUT_FLOW_RULES
from tfdyno.rules.bottleneck.input_work import INPUT_WORK_RULES, slow_pipeline
from tfdyno.rules.bottleneck.launch import LAUNCH_RULES
from tfdyno.rules.bottleneck.leak import LEAK_RULES, MEMORY_PRESSURE_RULES
from tfdyno.rules.bottleneck.memory_bandwidth import MEMORY_BANDWIDTH_RULES
from tfdyno.rules.bottleneck.placement import PLACEMENT_RULES
from tfdyno.rules.bottleneck.retrace import RETRACE_RULES
from tfdyno.rules.bottleneck.seen import Seen, look, samples_of_step, stage_walls
from tfdyno.rules.bottleneck.steady import in_bursts
from tfdyno.rules.bottleneck.tables import cause, limits
from tfdyno.words.base.language import say, say_later
from tfdyno.words.diagnose.steps import part_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfdyno.core.measure.step_facts import StepFacts

RULES: tuple[Rule, ...] = (
    *INPUT_WORK_RULES, *INPUT_FLOW_RULES, *HOST_RULES, *LAUNCH_RULES, *COMPUTE_RULES,
    *MEMORY_BANDWIDTH_RULES, *COMMUNICATION_RULES, *MEMORY_PRESSURE_RULES, *LEAK_RULES,
    *RETRACE_RULES, *CALLBACK_RULES, *PLACEMENT_RULES, *PRECISION_RULES, *CARD_RULES,
)  # fmt: skip

NOT_ON_JAX = say_later(
    "Not looked at on JAX: several devices, threads of the CPU, growth of the memory of a card, "
    "several steps in one call, and Python that TensorFlow's own functions trace again."
)
_LARGER_BATCH = ("launch.small_batch", "compute.batch")
"""Causes whose fix needs more memory."""
_NOT_THE_MODELS_OWN = ("input", "host", "callback", "retrace", "unseen")
"""Parts of a step in which nothing of the model is computed, exchanged or started."""
_GETS_WORSE = ("leak", "retrace")
"""Classes of what gets worse with every step: of those that lead, they do before the others."""


def diagnose(facts: StepFacts) -> StepDiagnosis:
    """Return what holds the step back, the primary cause first.

    The primary cause is the one whose fix should gain most. A leak and a function that is traced
    again lead before it, beyond the limits that their evidence names, for they get worse with
    every step. Nearly full memory and variables on another device lead where nothing gains 10 %.
    Where none of these is there the training is healthy, or what holds it is unknown.

    Args:
        facts: Of a run, a loop or a profile.

    Raises:
        UsageError: No steady step was seen.
    """
    seen = look(facts)
    drafts = _ordered(_drafts(seen))
    primary = _primary(drafts)
    notes = tuple(_notes(seen, drafts, primary))
    if primary is None:
        found: tuple[Bottleneck, ...] = (bottleneck(_without_cause(seen), facts.backend),)
    else:
        rest = [one for one in drafts if one is not primary]
        found = tuple(bottleneck(one, facts.backend) for one in (primary, *rest))
    return StepDiagnosis(
        title=facts.title,
        step_s=seen.step_s,
        split_s=seen.split.parts_s,
        compute_s=seen.split.compute_s,
        primary=found[0],
        findings=found,
        held_s=seen.split.held_s,
        batch_s=seen.split.batch_s,
        stages=stage_speeds(seen),
        notes=notes,
    )


def _drafts(seen: Seen) -> list[Draft]:
    """Return what is worth telling: defects, and all that should gain at least 5 %."""
    drafts = [draft for rule in RULES for draft in rule(seen)]
    if not any(_class(one) == "input" and _gains(one) for one in drafts):
        drafts += slow_pipeline(seen)
    names = {one.cause for one in drafts}
    if "memory_pressure.near_limit" in names:  # there is no room for a larger batch
        drafts = [_by_hand(one) for one in drafts if one.cause not in _LARGER_BATCH]
    return [
        one
        for one in drafts
        if not names.intersection(one.explained_by)
        and (cause(one.cause).defect or _best(one) >= limits()["least_told_gain"])
    ]


def _by_hand(draft: Draft) -> Draft:
    """Drop the setting of a larger batch: what else its fix says can be done all the same."""
    is_larger = draft.cause == "communication.small_batch"
    return replace(draft, settings={}) if is_larger else draft


def _ordered(drafts: Sequence[Draft]) -> list[Draft]:
    def key(one: Draft) -> tuple[object, ...]:
        words = cause(one.cause)
        # Gains within some per cent of each other are equal: the simpler change comes first.
        step = round(math.log(_best(one)) / math.log(limits()["equal_gain"]))
        grows = _outranks(one) and words.bottleneck_class in _GETS_WORSE
        return (not _outranks(one), not grows, not words.leads, -step, words.rank, one.cause)

    return sorted(drafts, key=key)


def _primary(drafts: Sequence[Draft]) -> Draft | None:
    """Choose among drafts in their order; None: healthy."""
    able = [one for one in drafts if cause(one.cause).leads]
    tests = (
        _outranks,
        _gains,
        lambda one: cause(one.cause).defect,
    )
    return next((one for test in tests for one in able if test(one)), None)


def _outranks(draft: Draft) -> bool:
    return draft.outranks or cause(draft.cause).outranks


def _gains(draft: Draft) -> bool:
    return _best(draft) >= limits()["least_gain"]


def _best(draft: Draft) -> float:
    return draft.gain.best if draft.gain else 1.0


def _class(draft: Draft) -> str:
    return cause(draft.cause).bottleneck_class


def _without_cause(seen: Seen) -> Draft:
    parts = seen.split.parts_s
    told = say(", ").join(
        f"{part_name(name)} {percent(parts[name] / seen.step_s)}"
        for name in SPLIT_PARTS
        if parts[name] >= 0.005 * seen.step_s and seen.step_s
    )
    split = evidence(
        "a step of {step}: {told}", "split of the step", step=duration(seen.step_s), told=told
    )
    recorded, busy = seen.facts.source == "record", seen.facts.host.cpu_ratio
    unexplained_s = sum(parts[name] for name in _NOT_THE_MODELS_OWN)
    if not recorded and unexplained_s > limits()["unexplained_ratio"] * seen.step_s:
        share = percent(unexplained_s / seen.step_s)
        return Draft(
            cause="unknown.not_explained",
            evidence=(split,),
            values={"share": share},
        )
    seen_too = [evidence("{share} of the CPUs were busy", "telemetry", share=percent(busy))]
    return Draft(
        cause="healthy.not_seen" if recorded else "healthy.no_lever",
        evidence=(split, *(seen_too if recorded and busy else ())),
        values={"gain": percent(limits()["least_gain"] - 1.0)},
    )


def _notes(seen: Seen, drafts: Sequence[Draft], primary: Draft | None) -> Iterator[str]:
    yield from seen.facts.notes
    if in_bursts(seen.facts.step_s):
        yield say("Steps come in bursts: their time is that of four neighbours on average.")
    if not seen.facts.held_s and seen.facts.source != "record":
        left = say(": waiting for data is what the profile leaves") if seen.facts.operations else ""
        yield say("No step on a held batch was measured{left}.", left=left)
    if seen.split.spread_s > limits()["noisy_ratio"] * seen.step_s:
        share = percent(seen.split.spread_s / seen.step_s)
        yield say(
            "The steps vary: parts of less than {share} of the step are not told from noise.",
            share=share,
        )
    if primary is None:
        for one in drafts:  # said, though nothing in the script mends it
            yield bottleneck(one, seen.facts.backend).summary
    if seen.facts.backend == "jax":
        yield say(NOT_ON_JAX)


def stage_speeds(seen: Seen) -> tuple[StageSpeed, ...]:
    """Give each stage its share of a batch's time, and the rate that it alone would allow.

        rate = samples of a batch / (time of a batch * share of the stage)

    Empty where no stage was timed: a share that is guessed is no measurement.
    """
    given, batch_s = seen.facts.input, seen.split.batch_s
    if given is None or not batch_s or not any(one.own_s > 0.0 for one in given.stages):
        return ()
    samples = samples_of_step(seen)
    least_s = limits()["told_stage_ratio"] * batch_s
    walls_s = stage_walls(given, batch_s, seen.cpus)
    return tuple(
        StageSpeed(
            title=one.title,
            place=one.place,
            batch_s=wall_s,
            samples_per_s=samples / wall_s if wall_s > least_s else 0.0,
            bytes_per_s=one.output_bytes / wall_s if wall_s > least_s else 0.0,
        )
        for one, wall_s in zip(given.stages, walls_s, strict=True)
    )
