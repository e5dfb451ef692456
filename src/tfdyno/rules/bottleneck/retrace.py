"""Functions that TensorFlow traces again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.rules.bottleneck.draft import Draft, duration, evidence
from tfdyno.rules.bottleneck.gains import amdahl
from tfdyno.rules.bottleneck.split import traced_in_each_step_s
from tfdyno.rules.bottleneck.tables import cause, limits, matching

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.step_facts import RetraceFacts
    from tfdyno.rules.bottleneck.seen import Seen

_KINDS = ("new_function", "shape", "dtype")


def traced_again(seen: Seen) -> Iterator[Draft]:
    """Each function beyond the limits, the longest traced first.

    The last batch of an epoch, and validation, may each cost one trace more: that is no finding.
    """
    steps = max(1, seen.facts.steps_seen)
    found = sorted(seen.facts.retraces, key=lambda one: -one.seconds_s)
    causes = set()
    for one in found:
        each_s = max(0.0, one.seconds_s) / steps
        name = traced_anew(one)
        if not _beyond(one, each_s, seen.step_s) or name in causes:
            continue
        causes.add(name)
        known = limits()
        told = [
            evidence(
                f"{one.function} was traced {one.traces} times after the first in {one.calls} "
                f"calls (up to {known['retraces_least'] - 1:.0f} are left alone)",
                "traces counted",
            ),
            evidence(f"{duration(one.seconds_s)} of tracing in {steps} steps", "traces timed"),
        ]
        if one.differs:
            told.append(evidence(one.differs, "arguments compared"))
        whole_s = seen.step_s + _beside_s(seen)
        yield Draft(cause=name, evidence=tuple(told), place=one.place,
                    gain=amdahl(whole_s, each_s, cause(name).removes),
                    values={"function": one.function, "differs": one.differs},
                    explained_by=_explained_by(seen, name))  # fmt: skip


def traced_anew(one: RetraceFacts) -> str:
    """The cause that fits what differed between two calls."""
    for kind in _KINDS:
        if matching(f"differs_{kind}", [one.differs]):
            return f"retrace.{kind}"
    is_argument = one.differs.startswith("argument")
    return "retrace.python_value" if is_argument else "retrace.unknown"


def _explained_by(seen: Seen, name: str) -> tuple[str, ...]:
    """New functions that something keeps are a leak, and tracing them is its symptom."""
    least = limits()["leak_known_bytes"]
    kept = any(
        one.kind == "functions" and one.suspects and one.low_bytes_per_step >= least
        for one in seen.facts.growth
    )
    return ("leak.functions",) if kept and name == "retrace.new_function" else ()


def _beyond(one: RetraceFacts, each_s: float, step_s: float) -> bool:
    known = limits()
    if one.traces < known["retraces_least"]:
        return False
    often = one.traces >= known["retrace_calls_ratio"] * max(1, one.calls)
    return often or each_s >= known["retrace_time_ratio"] * step_s


def _beside_s(seen: Seen) -> float:
    """Tracing per step that the typical step does not hold, for it happens now and then."""
    every = sum(max(0.0, one.seconds_s) for one in seen.facts.retraces)
    return max(0.0, every / max(1, seen.facts.steps_seen) - traced_in_each_step_s(seen.facts))


RETRACE_RULES = (traced_again,)
