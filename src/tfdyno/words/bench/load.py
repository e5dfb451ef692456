"""A load test in words: amounts, the headline, what each stretch was."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno.core.base.units import significant
from tfdyno.words.base.amounts import plural
from tfdyno.words.base.language import retold, say, say_later
from tfdyno.words.bench.measurement import seconds_words

if TYPE_CHECKING:
    from tfdyno.core.base.interval import Interval
    from tfdyno.core.measure.load import LoadPlan, LoadResult, LoadStage


_WRONG = frozenset((say_later("timed out"), say_later("connection lost"),
                    say_later("wrong answer")))  # fmt: skip
"""What goes wrong beside an answer with another status."""


def main_stage(result: LoadResult) -> LoadStage:
    """Return the stretch that the answer is about: the knee's, else the only or last one."""
    if result.knee_rate_per_s is not None:
        at_knee = [
            one
            for one in result.stages
            if one.holds and one.run.plan.rate_per_s == result.knee_rate_per_s
        ]
        if at_knee:
            return at_knee[-1]
    if result.p99_limit_s:
        return result.stages[0]
    return result.stages[-1]


def headline(result: LoadResult, *, name: str = "") -> str:
    """Return the answer in one sentence; why there is none comes first.

    Args:
        result: The test.
        name: Of what was tested; empty: the model and its address.
    """
    if not name:
        name = say("{model} at {url}", model=result.server.model, url=result.url)
    if result.failed:
        others = len(result.faults) - 1
        return say(
            "FAILED: {name}: {fault}{more}.",
            name=name,
            fault=result.faults[0],
            more=say(", and {count} more", count=others) if others else "",
        )
    figures, plan = main_stage(result).figures, main_stage(result).run.plan
    if not figures.accepted or figures.p50_s is None or figures.p99_s is None:
        return say("{name}: nothing was measured.", name=name)
    told = {
        "name": name,
        "rate": significant(figures.accepted_per_s),
        "plan": plan_words(plan),
        "limit": seconds_words(result.p99_limit_s),
        "tail": say(
            "p50 {p50}, p99 {p99}",
            p50=seconds_words(figures.p50_s.best),
            p99=seconds_words(figures.p99_s.best),
        ),
        "refused": say(", {share:.0%} refused", share=figures.refused_ratio)
        if figures.refused
        else "",
    }
    if result.knee_rate_per_s is not None:
        told["rate"] = significant(result.knee_rate_per_s)
        return say("{name} takes {rate} requests/s with p99 within {limit}: {tail}.", **told)
    if result.p99_limit_s:
        return say(
            "{name}: no rate was found with p99 within {limit}; {plan} get {rate} requests/s, "
            "{tail}.",
            **told,
        )
    return say(
        "{name}: {rate} requests/s with {plan}, {tail}{refused}."
        if plan.kind == "closed"
        else "{name}: {rate} answers/s of {plan} offered, {tail}{refused}.",
        **told,
    )


def plan_words(plan: LoadPlan) -> str:
    """Write ``64 clients``, ``800 requests/s``."""
    if plan.kind == "closed":
        return plural(plan.clients, "client")
    return say("{rate} requests/s", rate=significant(plan.rate_per_s))


def load_words(plan: LoadPlan) -> str:
    """Write ``800 requests/s``; ``800 requests/s, longer`` where that stretch decides the rate."""
    return say("{plan}, longer", plan=plan_words(plan)) if plan.decides else plan_words(plan)


def machine_words(result: LoadResult) -> str:
    """Return the CPUs that the client ran on."""
    return retold(result.machine, (say_later("{count} CPUs ({cpu})"),))


def ms(value: Interval | None) -> str:
    """Return milliseconds with three digits; a dash where nothing was measured."""
    return significant(value.best * 1e3) if value else "–"


def ms_range(value: Interval | None) -> str:
    """Write ``12.1–13.4``: the interval in ms; ``at least 12.1`` without an upper end."""
    if value is None:
        return "–"
    if math.isinf(value.high):
        return say("at least {least}", least=significant(value.low * 1e3))
    return f"{significant(value.low * 1e3)}–{significant(value.high * 1e3)}"


def rows_words(mean_rows: float) -> str:
    """Write ``1 row``, ``23.5 rows``."""
    return say("{count} row" if mean_rows == 1.0 else "{count} rows", count=significant(mean_rows))


def usd_words(usd: float) -> str:
    """Write ``$0.42``; three digits below a cent."""
    return f"${usd:,.2f}" if usd >= 0.1 else f"${significant(usd)}"


def wrong_words(stage: LoadStage) -> str:
    """Write ``500: 3, timed out: 2``; a dash where nothing went wrong."""
    wrong = stage.figures.errors.items()
    return ", ".join(f"{say(name) if name in _WRONG else name}: {n:,}" for name, n in wrong) or "–"


def batch_rows(stage: LoadStage) -> list[tuple[str, int, float]]:
    """Return the histogram: size in words, batches, their share; no empty ranges at its ends."""
    batches = stage.run.batches
    total = sum(batches.values())
    if not total:
        return []
    ordered = sorted(batches, key=lambda key: (key < 0, key))
    below = [0, *ordered]
    bounds = stage.run.batches_are_bounds
    found = [
        (_size(key, before, bounds=bounds), batches[key], batches[key] / total)
        for before, key in zip(below, ordered, strict=False)
    ]
    filled = [at for at, (_, count, _) in enumerate(found) if count]
    return found[filled[0] : filled[-1] + 1]


def _size(key: int, before: int, *, bounds: bool) -> str:
    if key < 0:
        return say("over {size}", size=before)
    return f"{before + 1}–{key}" if bounds and key > before + 1 else f"{key}"


def mark_of(result: LoadResult, stage: LoadStage) -> str:
    """Write ``* `` at the knee, ``x `` where the promise was broken; empty where none was given."""
    if stage.holds is None:
        return "  " if result.p99_limit_s else ""
    if not stage.holds:
        return "x "
    is_knee = result.knee_rate_per_s is not None and stage is main_stage(result)
    return "* " if is_knee else "  "
