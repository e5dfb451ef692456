"""Functions that TensorFlow traces again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.rules.bottleneck.callback import CALLBACK_CAUSES
from tfdyno.rules.bottleneck.draft import Draft, duration, evidence, quoted
from tfdyno.rules.bottleneck.gains import amdahl
from tfdyno.rules.bottleneck.split import (
    traced_in_each_step_s,
    traced_now_and_then_s,
    watched_steps,
)
from tfdyno.rules.bottleneck.tables import cause, limits, matching
from tfdyno.words.base.language import say
from tfdyno.words.diagnose.told import fact_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.doctor.finding import Evidence
    from tfdyno.core.measure.step_facts import RetraceFacts
    from tfdyno.rules.bottleneck.seen import Seen

_KINDS = ("new_iterator", "new_function", "shape", "dtype")


def traced_again(seen: Seen) -> Iterator[Draft]:
    """Find functions beyond the limits, by what made TensorFlow trace them, the longest first.

    The last batch of an epoch, and validation, may each cost one trace more: that is no finding.
    What is traced within a callback belongs to that callback where it costs anything.
    """
    steps = watched_steps(seen.facts)
    by_cause: dict[str, list[RetraceFacts]] = {}
    for one in sorted(seen.facts.retraces, key=lambda one: -one.seconds_s):
        if _beyond(one, max(0.0, one.seconds_s) / steps, seen.step_s):
            by_cause.setdefault(traced_anew(one), []).append(one)
    whole_s = seen.step_s + _beside_s(seen)
    for name, found in by_cause.items():
        one, every_s = found[0], sum(max(0.0, each.seconds_s) for each in found)
        gain = amdahl(whole_s, every_s / steps, cause(name).removes)
        jit = {"jit": one.function} if seen.facts.backend == "jax" else {}
        of = "dataset" if matching("differs_new_dataset", [one.differs]) else "function"
        told = _told(found, every_s, steps, seen)
        yield Draft(cause=name, evidence=told, place=one.place, gain=gain,
                    values={of: one.function, "differs": fact_words(one.differs), "of": of} | jit,
                    outranks=gain.best >= limits()["least_gain"],
                    explained_by=_explained_by(seen, name, found))  # fmt: skip


def _told(
    found: list[RetraceFacts], every_s: float, steps: int, seen: Seen
) -> tuple[Evidence, ...]:
    one, most = found[0], limits()["retraces_least"] - 1
    left = (
        say("up to {most:.0f} are left alone", most=most) if one.traces > most else say("each anew")
    )
    on_jax = seen.facts.backend == "jax"
    told = [
        evidence(
            "{function} was compiled {traces} times after the first in {calls} steps ({left})"
            if on_jax
            else "{function} was traced {traces} times after the first in {calls} calls ({left})",
            "compiles counted" if on_jax else "traces counted",
            function=one.function,
            traces=one.traces,
            calls=one.calls,
            left=left,
        ),
    ]
    if len(found) > 1:
        others = sum(each.traces for each in found[1:])
        told.append(
            evidence(
                "{count} more functions like it, compiled {others} times"
                if on_jax
                else "{count} more functions like it, traced {others} times",
                "compiles counted" if on_jax else "traces counted",
                count=len(found) - 1,
                others=others,
            )
        )
    told.append(
        evidence(
            "{every} of compiling in {steps} steps"
            if on_jax
            else "{every} of tracing in {steps} steps",
            "compiles timed" if on_jax else "traces timed",
            every=duration(every_s),
            steps=steps,
        )
    )
    if one.differs:
        told.append(quoted(one.differs, "arguments compared"))
    return tuple(told)


def traced_anew(one: RetraceFacts) -> str:
    """Return the cause that fits what differed between two calls."""
    for kind in _KINDS:
        if matching(f"differs_{kind}", [one.differs]):
            return f"retrace.{kind}"
    is_argument = one.differs.startswith("argument")
    return "retrace.python_value" if is_argument else "retrace.unknown"


def _explained_by(seen: Seen, name: str, found: list[RetraceFacts]) -> tuple[str, ...]:
    """Return causes of which it is the symptom.

    New functions that something keeps are a leak. What a callback traces is the callback's.
    """
    if all(one.callback for one in found):
        return CALLBACK_CAUSES
    least = limits()["leak_known_bytes"]
    kept = any(
        one.kind == "functions" and one.suspects and one.low_bytes_per_step >= least
        for one in seen.facts.growth
    )
    return ("leak.functions",) if kept and name == "retrace.new_function" else ()


def _beyond(one: RetraceFacts, each_s: float, step_s: float) -> bool:
    known = limits()
    each_call = one.traces >= max(known["retraces_each_call"], one.calls - 1)
    if one.traces < known["retraces_least"] and not each_call:
        return False
    often = one.traces >= known["retrace_calls_ratio"] * max(1, one.calls)
    return often or each_s >= known["retrace_time_ratio"] * step_s


def _beside_s(seen: Seen) -> float:
    """Return tracing per step beyond the split: a few traces, and those of callbacks."""
    facts = seen.facts
    held_s = traced_in_each_step_s(facts) + traced_now_and_then_s(facts)
    every_s = sum(max(0.0, one.seconds_s) for one in facts.retraces)
    return max(0.0, every_s / watched_steps(facts) - held_s)


RETRACE_RULES = (traced_again,)
