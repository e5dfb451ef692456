"""A load test in words: amounts, the headline, what each stretch was."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno.core.base.units import significant
from tfdyno.words.base.amounts import plural
from tfdyno.words.bench.measurement import seconds_words

if TYPE_CHECKING:
    from tfdyno.core.base.interval import Interval
    from tfdyno.core.measure.load import LoadPlan, LoadResult, LoadStage


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
    name = name or f"{result.server.model} at {result.url}"
    if result.failed:
        more = f", and {len(result.faults) - 1} more" if len(result.faults) > 1 else ""
        return f"FAILED: {name}: {result.faults[0]}{more}."
    figures = main_stage(result).figures
    rate = f"{significant(figures.accepted_per_s)} requests/s"
    if not figures.accepted or figures.p50_s is None or figures.p99_s is None:
        return f"{name}: nothing was measured."
    tail = f"p50 {seconds_words(figures.p50_s.best)}, p99 {seconds_words(figures.p99_s.best)}"
    if result.knee_rate_per_s is not None:
        return (
            f"{name} takes {significant(result.knee_rate_per_s)} requests/s with p99 within "
            f"{seconds_words(result.p99_limit_s)}: {tail}."
        )
    if result.p99_limit_s:
        return (
            f"{name}: no rate was found with p99 within {seconds_words(result.p99_limit_s)}; "
            f"{plan_words(main_stage(result).run.plan)} get {rate}, {tail}."
        )
    refused = f", {figures.refused_ratio:.0%} refused" if figures.refused else ""
    plan = main_stage(result).run.plan
    how = f"with {plan_words(plan)}" if plan.kind == "closed" else f"of {plan_words(plan)} offered"
    if plan.kind == "open":
        rate = f"{significant(figures.accepted_per_s)} answers/s"
    return f"{name}: {rate} {how}, {tail}{refused}."


def plan_words(plan: LoadPlan) -> str:
    """Write ``64 clients``, ``800 requests/s``."""
    if plan.kind == "closed":
        return plural(plan.clients, "client")
    return f"{significant(plan.rate_per_s)} requests/s"


def load_words(plan: LoadPlan) -> str:
    """Write ``800 requests/s``; ``800 requests/s, longer`` where that stretch decides the rate."""
    return f"{plan_words(plan)}, longer" if plan.decides else plan_words(plan)


def ms(value: Interval | None) -> str:
    """Return milliseconds with three digits; a dash where nothing was measured."""
    return significant(value.best * 1e3) if value else "–"


def ms_range(value: Interval | None) -> str:
    """Write ``12.1–13.4``: the interval in ms; ``at least 12.1`` without an upper end."""
    if value is None:
        return "–"
    if math.isinf(value.high):
        return f"at least {significant(value.low * 1e3)}"
    return f"{significant(value.low * 1e3)}–{significant(value.high * 1e3)}"


def rows_words(mean_rows: float) -> str:
    """Write ``1 row``, ``23.5 rows``."""
    return f"{significant(mean_rows)} {'row' if mean_rows == 1.0 else 'rows'}"


def usd_words(usd: float) -> str:
    """Write ``$0.42``; three digits below a cent."""
    return f"${usd:,.2f}" if usd >= 0.1 else f"${significant(usd)}"


def wrong_words(stage: LoadStage) -> str:
    """Write ``500: 3, timed out: 2``; a dash where nothing went wrong."""
    return ", ".join(f"{name}: {n:,}" for name, n in stage.figures.errors.items()) or "–"


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
        return f"over {before}"
    return f"{before + 1}–{key}" if bounds and key > before + 1 else f"{key}"


def mark_of(result: LoadResult, stage: LoadStage) -> str:
    """Write ``* `` at the knee, ``x `` where the promise was broken; empty where none was given."""
    if stage.holds is None:
        return "  " if result.p99_limit_s else ""
    if not stage.holds:
        return "x "
    is_knee = result.knee_rate_per_s is not None and stage is main_stage(result)
    return "* " if is_knee else "  "
