"""Why a load test failed, and what is not sure of its figures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno.core.base.units import significant
from tfdyno.model.measure.load_figures import FULL_CPU_RATIO, least_for_end, refusals_of
from tfdyno.words.base.amounts import listed
from tfdyno.words.base.language import say
from tfdyno.words.bench.load import main_stage
from tfdyno.words.bench.told import fault_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.measure.load import LoadPlan, LoadResult, LoadStage


def faults(result: LoadResult) -> tuple[str, ...]:
    """Say why the test failed: another server, errors, refusals that none allowed, no answer."""
    found: dict[str, None] = {}
    for stage in result.stages:
        run = stage.run
        found |= dict.fromkeys(map(fault_words, run.faults))
        told = {"all": len(run.codes), "where": _where(run.plan)}
        for name, count in stage.figures.errors.items():
            found[_went_wrong(name, count=count, **told)] = None
        searching = result.p99_limit_s and run.plan.kind == "open"
        allowed = result.allows_refusals or searching
        for code, count in () if allowed else refusals_of(run).items():
            refused = say(
                "{count:,} of {all:,} requests were refused ({code}) {where}",
                count=count,
                code=code,
                **told,
            )
            found[refused] = None
        if not run.codes and not run.stopped:
            found[say("no request was answered {where}", where=told["where"])] = None
    return tuple(found)


def _went_wrong(name: str, **told: object) -> str:
    """Return how many requests had an error of this name."""
    match name:
        case "timed out":
            return say("{count:,} of {all:,} requests timed out {where}", **told)
        case "connection lost":
            return say("{count:,} of {all:,} requests lost their connection {where}", **told)
        case "wrong answer":
            return say(
                "{count:,} of {all:,} requests got an answer that is not this model's {where}",
                **told,
            )
    return say("{count:,} of {all:,} requests were answered {name} {where}", name=name, **told)


def _where(plan: LoadPlan) -> str:
    if plan.kind == "closed":
        return say("with {count:,} clients", count=plan.clients)
    return say("at {rate} requests/s", rate=significant(plan.rate_per_s))


def warnings(result: LoadResult) -> tuple[str, ...]:
    """Return what a reader of the figures has to know."""
    found = []
    limited = [one for one in result.stages if one.figures.client_is_limit]
    if limited:
        worst = max(limited, key=lambda one: one.figures.client_cpu_ratio)
        found.append(_client_words(worst))
    found += [*_few_words(main_stage(result)), *_knee_words(result)]
    return tuple(found)


def _few_words(stage: LoadStage) -> Iterator[str]:
    """Say which quantiles of the answer have no upper end, and how many requests give one."""
    figures = stage.figures
    tails = {"p95": (figures.p95_s, 0.95), "p99": (figures.p99_s, 0.99),
             "p99.9": (figures.p999_s, 0.999)}  # fmt: skip
    without = {name: share for name, (found, share) in tails.items()
               if found and math.isinf(found.high)}  # fmt: skip
    if without:
        yield say(
            "{count:,} requests {where} are few: {quantiles} has no upper end before {least:,}; "
            "give more --seconds"
            if len(without) == 1
            else "{count:,} requests {where} are few: {quantiles} have no upper end before "
            "{least:,}; give more --seconds",
            count=figures.accepted,
            where=_where(stage.run.plan),
            quantiles=listed(list(without)),
            least=least_for_end(max(without.values())),
        )


def _knee_words(result: LoadResult) -> Iterator[str]:
    """Say what is not sure of the largest rate."""
    if not result.p99_limit_s:
        return
    has_decided = any(one.run.plan.decides and not one.run.stopped for one in result.stages)
    if result.knee_rate_per_s is not None and not has_decided:
        yield say("no longer stretch decided on that rate: it may be too high")
    elif result.knee_rate_per_s is None and not result.stopped:
        yield say(
            "no rate kept the promised p99 for sure in a longer stretch"
            if has_decided
            else "no rate that was tried kept the promised p99"
        )


def _client_words(stage: LoadStage) -> str:
    """Return what the client adds to the figures by itself."""
    cpu, late_ms = stage.figures.client_cpu_ratio, stage.run.lag_p99_s * 1e3
    where = _where(stage.run.plan)
    if cpu >= FULL_CPU_RATIO:
        return say(
            "the client is what was measured {where}: it took {share:.0%} of a CPU; the server may "
            "be faster",
            where=where,
            share=cpu,
        )
    return say(
        "the client was {late:.1f} ms late 1 time in 100 {where}, and latencies hold that: it took "
        "only {share:.0%} of a CPU, so others kept the CPUs of its machine busy, such as the "
        "server itself",
        late=late_ms,
        where=where,
        share=cpu,
    )
