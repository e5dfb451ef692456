"""A diagnosis in words: shares that add up, gains, what a proof rests on, what to type next."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING

from tfdyno.core.base.units import significant
from tfdyno.words.base.amounts import percent, plural
from tfdyno.words.base.language import joined, say, say_later
from tfdyno.words.bench.comparison import interval_words, ratio_words
from tfdyno.words.bench.measurement import seconds_words, step_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.measure.bottleneck import Gain
    from tfdyno.core.measure.fix_proof import Agreement, FixProof
    from tfdyno.core.measure.step_facts import CardFacts, StepFacts
    from tfdyno.view.diagnose.document import DiagnoseReport

BAR = "█"
_FAR_APART_RATIO = 10.0
"""A difference of losses above this is told as such, not as a percentage."""
_LEAST_RATIO = 1e-5
"""A smaller difference is told as less than that."""


def shares(split_s: Mapping[str, float]) -> list[tuple[str, int]]:
    """Round parts to whole percent that add up to 100, the largest first; empty ones are left out.

    The percents that rounding down leaves over go to the parts that lost most by it.
    """
    known = {name: value for name, value in split_s.items() if value > 0}
    total = sum(known.values())
    if not total:
        return []
    exact = {name: 100.0 * value / total for name, value in known.items()}
    whole = {name: math.floor(value) for name, value in exact.items()}
    by_loss = sorted(exact, key=lambda name: whole[name] - exact[name])
    for name in by_loss[: 100 - sum(whole.values())]:
        whole[name] += 1
    return [(name, whole[name]) for name in sorted(known, key=lambda name: -known[name])]


def bar(percent: int, columns: float) -> str:
    """Return a bar of that share of the columns; what is there at all gets one."""
    return BAR * max(1, round(percent * columns / 100))


def step_line(step_s: float, facts: StepFacts, samples_per_s: float) -> str:
    """Write ``418 ms (half of them 411–426)   612 samples/s``; or with its share of the epoch."""
    half_s = middle_half(facts.step_s)
    best, bounds = step_words(step_s, half_s) if half_s else (seconds_words(step_s), "")
    spread = say(" (half of them {bounds})", bounds=bounds) if "–" in bounds else ""
    if half_s and step_s > half_s[1]:  # validation and what else an epoch costs beside its steps
        best, spread = seconds_words(step_s), say(" with its share of the epoch")
    rate = say("   {rate} samples/s", rate=significant(samples_per_s)) if samples_per_s else ""
    return f"{best}{spread}{rate}"


def middle_half(times_s: Sequence[float]) -> tuple[float, float] | None:
    """Return the quarter and three quarters of the times; None where there are too few."""
    if len(times_s) < 4:
        return None
    ordered, last = sorted(times_s), len(times_s) - 1
    return ordered[round(last / 4)], ordered[round(3 * last / 4)]


def run_words(facts: StepFacts) -> str:
    """Write ``batch 256, 60 steps, 2 replicas, on CPUs``: what was looked at."""
    cpus = round(facts.host.usable_cpus)  # 0: a profile does not tell
    on_cpu = say("on {cpus}", cpus=plural(cpus, "CPU")) if cpus else say("on a CPU")
    parts = [
        say("batch {batch:,}", batch=facts.batch_size) if facts.batch_size else "",
        plural(facts.steps_seen, "step") if facts.steps_seen else "",
        say("{count} replicas", count=facts.replica_count) if facts.replica_count > 1 else "",
        say("{count} workers", count=facts.worker_count) if facts.worker_count > 1 else "",
        facts.precision if facts.precision != "float32" else "",
        "JAX" if facts.backend == "jax" else "",
        {"xla": "XLA" if facts.backend == "tensorflow" else "", "graph": "", "eager": "eager"}[
            facts.execution
        ],
        say("on the GPU") if facts.device == "gpu" else on_cpu,
    ]
    return say(", ").join(filter(None, parts))


def gain_words(gain: Gain) -> str:
    """Write ``2.3–2.6x``; one number where both bounds read the same."""
    low, high = (significant(value, 2) for value in (gain.low, gain.high))
    return say("{ratio}x", ratio=low if low == high else f"{low}–{high}")


def expected_words(gain: Gain, step_s: float) -> str:
    """Return the expected gain, and what the step would take then."""
    return f"{gain_words(gain)}   {then_words(gain, step_s)}"


def then_words(gain: Gain, step_s: float) -> str:
    """Return what the step would take with a gain."""
    fast_s, slow_s = step_s / gain.high, step_s / max(gain.low, 1e-9)
    best, bounds = step_words(step_s / gain.best, (fast_s, slow_s))
    unit = best.rpartition(" ")[2]
    then = f"{bounds} {unit}" if "–" in bounds else seconds_words(step_s / gain.best)
    return say("the step then takes {then}", then=then)


def proof_words(proof: FixProof) -> tuple[str, str]:
    """Write a label and what came out: ``proven`` with the gain, or ``tried`` with why it goes."""
    if proof.verdict in (None, "not_comparable"):
        return say_later("tried"), proof.reason
    sure = f"{proof.confidence_ratio:.0%}".replace("%", " %")
    times = f"{seconds_words(proof.before_s)} -> {seconds_words(proof.after_s)}"
    rests = say(
        "{interval}, {sure}; {runs} of each in turns",
        interval=interval_words(proof.interval),
        sure=sure,
        runs=plural(proof.runs, "run"),
    )
    said = say(
        "{ratio} ({rests}, {times})", ratio=ratio_words(proof.ratio), rests=rests, times=times
    )
    if not proof.kept:
        reason = proof.reason
        if proof.agreement:
            agreed = agreement_words(proof.agreement)
            reason = say("{reason}: {agreed}.", reason=reason.rstrip(".。"), agreed=agreed)
        return say_later("tried"), joined((say("{text}.", text=said), reason))
    assert proof.agreement
    return say_later("proven"), say("; ").join((said, agreement_words(proof.agreement)))


def agreement_words(found: Agreement) -> str:
    """Return what the losses say: ``same losses after 16 steps (0.02 % apart, 0.1 % allowed)``."""
    allowed = say(
        "{tolerance} allowed: {why}", tolerance=_percent(found.tolerance_ratio), why=found.why
    )
    if found.unchanged_ratio is not None and math.isfinite(found.unchanged_ratio):
        own = _percent(found.unchanged_ratio)
        allowed = say(
            "{tolerance} allowed: without the change it is {own} apart",
            tolerance=_percent(found.tolerance_ratio),
            own=own,
        )
    head = say("same losses") if found.agrees else say("other losses")
    if not math.isfinite(found.difference_ratio):
        return say(
            "{head} after {steps} (there is none, or one is no number)",
            head=head,
            steps=plural(found.steps, "step"),
        )
    apart = _percent(found.difference_ratio)
    return say(
        "{head} after {steps} ({apart} apart, {allowed})",
        head=head,
        steps=plural(found.steps, "step"),
        apart=apart,
        allowed=allowed,
    )


def command(verb: str, reference: str, arguments: Sequence[str], kept: Mapping[str, object]) -> str:
    """Write ``tfdyno train train.py --set input.prefetch=-1``, ready to be typed.

    Args:
        verb: ``train`` or ``diagnose``.
        reference: The workload as typed.
        arguments: Other words; those of the script stand behind ``--``.
        kept: Settings by flat name.
    """
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    own, of_script = arguments[:cut], arguments[cut:]
    settings = [word for name, value in kept.items() for word in ("--set", f"{name}={_set(value)}")]
    return shlex.join(["tfdyno", verb, reference, *own, *settings, *of_script])


def next_steps(told: DiagnoseReport) -> list[tuple[str, str, str]]:
    """Return what may come next: a label, what it is for, and the command that does it."""
    kept, words = told.kept, (*told.own_arguments, *told.arguments)
    if told.look:
        return [(say_later("next"), say("look at the steps themselves"), told.look)]
    if kept:
        again = command("diagnose", told.reference, words, kept)
        return [*_to_apply(told), (say_later("next"), say("look for what is next"), again)]
    findings = told.proven.diagnosis.findings
    can_change = any(one.settings and one.expected_gain for one in findings)
    if told.tried or not can_change or told.facts.source == "profile":
        return []
    typed = command("diagnose", told.reference, ("--fix", *words), {})
    purpose = say("measure the change, keep it if it is faster and learns the same")
    return [(say_later("next"), purpose, typed)]


def _to_apply(told: DiagnoseReport) -> list[tuple[str, str, str]]:
    """Say how to apply: ``train`` takes a call of ``fit``; a loop of one's own goes by hand."""
    if told.facts.source != "loop":
        typed = command("train", told.reference, told.arguments, told.kept)
        return [(say_later("apply"), say("train with what was kept"), typed)]
    if told.written:
        return []
    words = ("--fix", "--resume", "--write", "fix", *told.own_arguments, *told.arguments)
    typed = command("diagnose", told.reference, words, {})
    return [(say_later("apply"), say("write what was kept as a change of the script"), typed)]


def card_rows(cards: Sequence[CardFacts]) -> list[tuple[str, str]]:
    """Name of each card whose driver tells of it, and what it was doing while steps ran."""
    known = [one for one in cards if one.busy_ratio > 0.0]
    return [(one.name or f"GPU {at}", _card_words(one)) for at, one in enumerate(known)]


def _card_words(one: CardFacts) -> str:
    """Write such as ``busy 38 % of the time, 212 of 700 W, 1,410 of 1,980 MHz``."""
    told = [say("busy {share} of the time", share=percent(one.busy_ratio))]
    if one.power_w and one.power_limit_w:
        told.append(
            say(
                "{power:,.0f} of {limit:,.0f} W",
                power=one.power_w,
                limit=one.power_limit_w,
            )
        )
    if one.clock_hz and one.clock_limit_hz:
        told.append(
            say(
                "{clock:,.0f} of {limit:,.0f} MHz",
                clock=one.clock_hz / 1e6,
                limit=one.clock_limit_hz / 1e6,
            )
        )
    return say(", ").join(told)


def _set(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def _percent(ratio: float) -> str:
    if ratio > _FAR_APART_RATIO:
        return say("far")
    if 0 < ratio < _LEAST_RATIO:
        return say("under {value:.2g} %", value=100 * _LEAST_RATIO)
    return f"{100 * ratio:.2g} %"
