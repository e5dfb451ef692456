"""A project's answer in sentences: what each step found, what changed, what it gained."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.interval import Interval
from tfdyno.core.base.units import format_bytes, significant
from tfdyno.core.project.report import DONE
from tfdyno.words.base.amounts import (
    capital,
    hours_range,
    listed,
    lower,
    percent,
    plural,
    short_hours,
    table_usd,
)
from tfdyno.words.bench.comparison import interval_words, ratio_words
from tfdyno.words.bench.measurement import seconds_words, step_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.project.project import ProjectRun
    from tfdyno.core.project.report import Change, Gained, KeyFigure, RunTold, StepTold

TITLES = {
    "advise": "Which GPU", "size": "Size of the service", "estimate": "Estimate",
    "memory": "Memory", "data": "Input", "train": "Training", "tune": "Tuning",
    "bench": "Speed", "diagnose": "What holds it back", "export": "Export", "models": "Models",
    "edge": "Small devices", "load": "Load test", "other": "Step",
}  # fmt: skip
_DIGEST = 16
"""Hexadecimal digits from which a value is shown as a digest."""
_ENDS = {"failed": "failed", "stopped": "was stopped", "finished": "was made as well"}
_SHOWN = 12
_KEPT = frozenset({"s", "bytes", "ratio"})
"""Units that stand behind the higher bound; of others the number before says it."""
_LONG = 60
"""Characters of a value that are shown."""


def sure_words(ratio: float) -> str:
    """Write ``95 %``."""
    return f"{100 * ratio:.3g} %"


def value_words(one: KeyFigure) -> str:
    """Return the number with its unit: ``186 samples/s``, ``$0.40``, ``1.24x``."""
    if one.unit == "s":
        return seconds_words(one.value)
    if one.unit == "h":
        return short_hours(one.value)
    if one.unit == "bytes":
        return format_bytes(one.value)
    if one.unit == "usd":
        return f"${table_usd(one.value)}"
    if one.unit == "ratio":
        return f"{significant(100 * one.value)} %"
    if one.unit == "times":
        return ratio_words(one.value)
    return f"{significant(one.value)} {one.unit}".rstrip()


def bounds_words(one: KeyFigure) -> str:
    """Write ``155–182, 95 %``; empty where there is no interval."""
    if one.low is None or one.high is None:
        return ""
    said = "9 in 10" if one.basis == "estimated" else sure_words(one.confidence_ratio)
    sure = f", {said}" if one.confidence_ratio else ""
    if one.unit == "h":
        return f"{hours_range(Interval(low=one.low, best=one.value, high=one.high))}{sure}"
    if one.unit == "s" and one.value < 120.0 and one.high < 120.0:
        return f"{step_words(one.value, (one.low, one.high))[1]}{sure}"
    if one.unit == "times":
        return f"{interval_words((one.low, one.high))}{sure}"
    low, high = (value_words(replace(one, value=bound)) for bound in (one.low, one.high))
    if one.unit == "usd":
        return f"{low}–{high.removeprefix('$')}{sure}"
    unit = f" {low.rpartition(' ')[2]}"
    low = low.removesuffix(unit) if one.unit != "s" and high.endswith(unit) else low
    high = high if one.unit in _KEPT else high.removesuffix(unit)
    return f"{low}–{high}{sure}"


def figure_words(one: KeyFigure) -> str:
    """Return number and interval: ``165 samples/s (155–182, 95 %)``."""
    bounds = bounds_words(one)
    return f"{value_words(one)} ({bounds})" if bounds else value_words(one)


def titled_words(one: KeyFigure) -> str:
    """Write ``throughput 165 samples/s (155–182, 95 %)``."""
    of = f", {one.of}" if one.of else ""
    return f"{lower(one.title)}{of}: {figure_words(one)}"


def basis_words(one: KeyFigure) -> str:
    """Return what the number rests on."""
    if one.basis == "exact":
        return "counted"
    if one.basis == "estimated":
        return "estimated"
    where = f" on {one.place}" if one.place else ""
    return f"measured{where}" + (f"; {one.terms}" if one.terms else "")


def status_words(step: StepTold) -> str:
    """Write ``done``, ``reused``, ``failed``, ``stopped``, ``not reached``, ``running`` ..."""
    if not step.reached:
        return "to come" if step.run.status == "running" else "not reached"
    return {"finished": "done"}.get(step.run.status, step.run.status)


def run_sentence(told: RunTold) -> str:
    """Return how far the run came: ``All 7 steps are done, 2 of them reused from before.``."""
    steps = told.steps
    done = [one for one in steps if one.run.status in DONE]
    if not steps:
        return "The run has no steps."
    if told.run.status == "running":
        return f"The run is going on: {_done_words(len(done), len(steps))} so far."
    if len(done) == len(steps):
        return f"{_all_done_words(steps)}."
    said = [_done_words(len(done), len(steps))]
    for word, verb in (("failed", "failed"), ("stopped", "was stopped"),
                       ("not reached", "was not reached")):  # fmt: skip
        names = [one.run.step for one in steps if status_words(one) == word]
        were = verb.replace("was", "were") if len(names) > 1 else verb
        said += [f"{listed(names)} {were}"] if names else []
    return f"{'; '.join(said)}."


def _done_words(done: int, count: int) -> str:
    """Write ``1 of 4 steps is done``."""
    return f"{done} of {plural(count, 'step')} {'is' if done == 1 else 'are'} done"


def _all_done_words(steps: Sequence[StepTold]) -> str:
    reused = sum(one.run.status == "reused" for one in steps)
    if len(steps) == 1:
        return "The one step is done" + (", reused from an earlier run" if reused else "")
    which = "all" if reused == len(steps) else f"{reused}"
    also = f", {which} of them reused from an earlier run" if reused else ""
    return f"All {len(steps)} steps are done{also}"


def error_words(step: StepTold) -> str:
    """Return why there is nothing of a step; empty where there is something."""
    if step.run.error:
        return stopped(capital(step.run.error))
    return stopped(capital(step.trouble)) if step.trouble else ""


def stopped(text: str) -> str:
    """Return a text with a stop."""
    return text if not text or text.endswith((".", "?", "!")) else f"{text}."


def change_words(one: Change) -> str:
    """Write ``option epochs: 5 → 6``; digests are cut, a run that is another is named."""
    return _change_words(one) + (f" (since {one.since})" if one.since else "")


def _change_words(one: Change) -> str:
    if one.what == "step":
        return "ran for the first time"
    if one.what == "making":
        return "was made again, though nothing that it rests on has changed"
    if not one.before or not one.after:
        there = one.after or one.before
        came = "is new" if one.after else "is gone"
        shown = there and not _is_digest(there)
        return f"{one.what} {came}" + (f" ({_short(there)})" if shown else "")
    if _is_digest(one.before) and _is_digest(one.after):
        return f"{one.what} has changed"
    return f"{one.what}: {_short(one.before)} → {_short(one.after)}"


def _is_digest(text: str) -> bool:
    return len(text) >= _DIGEST and all(one in "0123456789abcdef" for one in text)


def _short(text: str) -> str:
    if _is_digest(text):
        return text[:_SHOWN]
    return text if len(text) <= _LONG else f"{text[: _LONG - 1]}…"


def changes_words(found: Sequence[Change]) -> list[tuple[str, str]]:
    """Return names of steps and what changed for them; what is the same for several stands once."""
    grouped = dict[str, list[str]]()
    for one in found:
        grouped.setdefault(change_words(one), []).append(one.step)
    return [
        (listed(steps, most=4),
         text.replace("was made again, though nothing that it rests on has",
                      "were made again, though nothing that they rest on has")
         if steps[1:] else text)
        for text, steps in grouped.items()
    ]  # fmt: skip


def gained_words(one: Gained) -> str:
    """Return the figure before and after, its ratio with the interval, or why there is none."""
    times = f"{value_words(one.before)} → {value_words(one.after)}"
    name = f"{one.figure}, {one.of}" if one.of else one.figure
    since = f" (since {one.since})" if one.since else ""
    return f"{name}: {times}{_verdict_words(one)}{since}"


def verdict_words(one: Gained) -> str:
    """Return what two figures say of each other: ``better, 1.2x (1.1–1.3, 99 %)``, ``+12%``."""
    text = _verdict_words(one).removeprefix("; ")
    return text.strip(" ()") if one.way == "counts" else text


def _verdict_words(one: Gained) -> str:
    if one.verdict == "not_compared":
        return f"; not compared: {one.reason}"
    if one.way == "counts":
        share = one.after.value / one.before.value - 1
        sign = "+" if share > 0 else "−"
        return f" ({sign}{percent(abs(share))})" if share else "; unchanged"
    sure = sure_words(one.confidence_ratio)
    bounds = f"{ratio_words(one.ratio)} ({interval_words(one.interval)}, {sure})"
    said = {"better": "better", "worse": "worse", "no_difference": "no difference"}[one.verdict]
    # Such as that the machine's own speed is taken out: the ratio may then lie on the other side
    # of 1 than that of the two numbers.
    return f"; {said}, {bounds}" + (f"; {one.caveat}" if one.caveat else "")


def duration_words(run: ProjectRun) -> str:
    """Sum all its steps; empty where none took any time."""
    total_s = sum(one.duration_s for one in run.steps)
    return seconds_words(total_s) if total_s > 0 else ""


def when(moment: str) -> str:
    """Write ``2026-11-24 04:10`` of an ISO date and time."""
    return moment[:16].replace("T", " ")


def step_counts(run: ProjectRun) -> tuple[int, int, int]:
    """Return steps that the run did, that it reused, and that failed."""
    words = [one.status for one in run.steps]
    return words.count("finished"), words.count("reused"), words.count("failed")


def step_count(run: ProjectRun) -> int:
    """Return steps that the run was to do, those that it did not come to included."""
    return len({*run.chosen, *(one.step for one in run.steps)})


def why_words(one: StepTold) -> str:
    """Return why a step was made, or not, as against the run before."""
    if not one.reached:
        is_to_come = one.run.status == "running"
        return "the run has not come to it yet" if is_to_come else "the run did not come to it"
    if one.run.why:
        return one.run.why
    if one.run.status == "reused":
        return "nothing that it rests on has changed"
    if not one.before:
        return "there was nothing to reuse"
    if one.changed:
        return listed([change_words(each) for each in one.changed], most=4)
    return f"in the run before it {_ENDS.get(one.before, 'came to no end')}"
