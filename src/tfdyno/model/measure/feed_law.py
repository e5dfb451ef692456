"""From the rounds and looks of a measured pipeline to its rates, CPU time and stages."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.interval import NOTHING, Interval
from tfdyno.core.measure.feed import FeedLaw, FeedPoint, StageRate
from tfdyno.model.measure.feeding import capped, rising
from tfdyno.model.measure.statistics import mean, median, quantile, student_t_quantile, variance

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfdyno.core.measure.feed import Feed, FeedRound, RoundKind
    from tfdyno.core.measure.step_facts import StageFacts

CONFIDENCE_RATIO = 0.9
ORDER: tuple[RoundKind, ...] = ("warm", "first", "cold")
"""Which rounds stand for the pipeline, where there are several kinds."""
_AHEAD = ("prefetch",)
_TOLD_RATIO = 0.2
_SEVERAL_THREADS = 1.25
_TAIL_RATIO = 0.1
"""The share of the looks that are slower, and as many quicker, than the two ends."""


def spread(values: Sequence[float]) -> Interval:
    """Average positive values by their logarithms, with the 90 % interval of Student's t.

    One value has no width. Raises ``ValueError`` where there is none, or one is not positive.
    """
    logs = [math.log(value) for value in values]
    middle, half = mean(logs), 0.0
    if len(logs) > 1:
        reach = student_t_quantile(0.5 + CONFIDENCE_RATIO / 2, len(logs) - 1)
        half = reach * math.sqrt(variance(logs) / len(logs))
    return Interval(
        low=math.exp(middle - half), best=math.exp(middle), high=math.exp(middle + half)
    )


def rounds_of(feed: Feed, kind: RoundKind) -> tuple[FeedRound, ...]:
    """Return those of one kind that gave samples."""
    return tuple(one for one in feed.rounds if one.kind == kind and one.samples)


def standing(feed: Feed) -> tuple[FeedRound, ...]:
    """Return the rounds that stand for the pipeline: the first kind of ``ORDER`` that it has."""
    return next(filter(None, (rounds_of(feed, kind) for kind in ORDER)), ())


def full(feed: Feed) -> tuple[FeedRound, ...]:
    """Return those of ``standing`` with all CPUs."""
    rounds = standing(feed)
    most = max((one.cpus for one in rounds), default=0.0)
    return tuple(one for one in rounds if one.cpus == most)


def over(rounds: Sequence[FeedRound], amount: Callable[[FeedRound], float]) -> Interval | None:
    """Return the spread of an amount over rounds; None where it is not known in some."""
    values = [amount(one) for one in rounds]
    return spread(values) if values and all(value > 0.0 for value in values) else None


def wanted_cpus(one: FeedRound) -> float:
    """Return CPUs that a round would have kept busy with nothing else on them.

    Its own, and what others took while its threads waited for a CPU.
    """
    missed_s = min(one.other_cpu_s, one.delay_s)
    return min(one.cpus, (one.cpu_s + missed_s) / one.seconds_s)


def alone_per_s(one: FeedRound) -> float:
    """Return samples per second of a round as if nothing else had run on its CPUs."""
    rate, own_s = one.samples / one.seconds_s, one.cpu_s
    return rate * max(1.0, wanted_cpus(one) * one.seconds_s / own_s) if own_s > 0.0 else rate


def other_ratio(feed: Feed) -> float:
    """Share of the CPUs that everything else took in the rounds that stand."""
    rounds = standing(feed)
    had_s = math.fsum(one.seconds_s * one.cpus for one in rounds)
    return math.fsum(one.other_cpu_s for one in rounds) / had_s if had_s else 0.0


def law_of(feed: Feed) -> FeedLaw:
    """Return what the pipeline gives with any number of CPUs.

    Raises:
        ValueError: No round gave a sample.
    """
    by_cpus: dict[float, list[float]] = {}
    for one in standing(feed):
        by_cpus.setdefault(one.cpus, []).append(alone_per_s(one))
    if not by_cpus:
        raise ValueError("need a round with samples")
    points = rising(
        [FeedPoint(cpus=cpus, rate_per_s=spread(rates)) for cpus, rates in by_cpus.items()]
    )
    serial, stages = _serial(feed, points)
    return FeedLaw(
        points=tuple(replace(one, rate_per_s=capped(one.rate_per_s, serial)) for one in points),
        sample_cpu_s=over(full(feed), lambda one: one.cpu_s / one.samples) or NOTHING,
        serial_per_s=serial,
        serial_stages=stages,
    )


_SOURCES = {"generator": "the generator", "pydataset": "the one worker of the PyDataset"}


def _serial(feed: Feed, points: Sequence[FeedPoint]) -> tuple[Interval | None, tuple[str, ...]]:
    """Return samples/s of the longest run of stages that share a thread, and what they are.

    A thread's seconds hold its waiting for a CPU, which more CPUs would not have: the high end is
    one of the quickest looks without it, the low end one of the slowest with it. What was measured
    is possible in any case.
    """
    if feed.kind == "generator" or (feed.kind == "pydataset" and feed.workers == 1):
        return points[-1].rate_per_s, (_SOURCES[feed.kind],)
    looks = _as_they_ran(feed, points[-1].rate_per_s.best)
    if not looks:
        return None, ()
    longest = [max(_runs(look), key=_seconds) for look in looks]
    per_sample_s = [_seconds(run) / feed.batch_size for run in longest]
    if min(per_sample_s) <= 0.0:
        return None, ()
    worked, here = _worked_ratio(feed, looks), points[-1].rate_per_s
    run = longest[len(longest) // 2]
    told = [stage for stage in run if stage.own_s >= _TOLD_RATIO * _seconds(run)]
    told.sort(key=lambda stage: -stage.own_s)
    most = Interval(
        low=max(here.low, 1.0 / quantile(per_sample_s, 1.0 - _TAIL_RATIO)),
        best=max(here.best, 1.0 / (median(per_sample_s) * math.sqrt(worked))),
        high=max(here.high, 1.0 / (quantile(per_sample_s, _TAIL_RATIO) * worked)),
    )
    return most, tuple(stage.title for stage in told)


def _as_they_ran(feed: Feed, rate_per_s: float) -> list[tuple[StageFacts, ...]]:
    """Return the looks that have times, where what worked for more than one thread is parallel.

    TensorFlow makes a ``map`` parallel that is written otherwise, and does not say so where it
    joins it with a ``batch``. A stage of one thread cannot take more than its time at the rate that
    was measured.
    """
    looks = [
        look
        for look in feed.looks
        if any(stage.own_s > 0.0 for stage in look) and len(look) == len(feed.looks[0])
    ]
    if not looks or not feed.batch_size:
        return []
    busy = rate_per_s * _worked_ratio(feed, looks) / feed.batch_size
    own_s = [median([look[at].own_s for look in looks]) for at in range(len(looks[0]))]
    several = [stage_s * busy > _SEVERAL_THREADS for stage_s in own_s]
    return [
        tuple(
            replace(stage, parallel_calls=-1) if many and stage.parallel_calls == 1 else stage
            for stage, many in zip(look, several, strict=True)
        )
        for look in looks
    ]


def _runs(look: Sequence[StageFacts]) -> list[list[StageFacts]]:
    """Return stages in the groups that one thread works through, sources first.

    A stage that works on several elements at once, or makes them ready ahead, takes its input in a
    thread of its own. What several threads share is in no group.
    """
    runs: list[list[StageFacts]] = [[]]
    for stage in look:
        if stage.parallel_calls != 1 or stage.kind in _AHEAD:
            runs.append([])
        else:
            runs[-1].append(stage)
    return runs


def _seconds(run: Sequence[StageFacts]) -> float:
    return math.fsum(stage.own_s for stage in run)


def _worked_ratio(feed: Feed, looks: Sequence[Sequence[StageFacts]]) -> float:
    """Share of the seconds of all threads in which they did not wait for a CPU."""
    delays_s = [one.delay_s / one.samples for one in full(feed)]
    threads_s = median([_seconds(look) for look in looks]) / feed.batch_size
    if not delays_s or threads_s <= 0.0:
        return 1.0
    cost = over(full(feed), lambda one: one.cpu_s / one.samples)
    least = min(1.0, cost.best / threads_s) if cost else 0.0
    return max(least, 1.0 - median(delays_s) / threads_s)


def busy_cpus(feed: Feed) -> float:
    """Return CPUs that the pipeline kept busy with all of them; 0.0: nothing was measured."""
    rounds = full(feed)
    spent_s = math.fsum(one.seconds_s for one in rounds)
    return math.fsum(one.cpu_s for one in rounds) / spent_s if spent_s else 0.0


def stage_rates(feed: Feed, law: FeedLaw) -> tuple[StageRate, ...]:
    """Return the stages of the pipeline, sources first; empty where they are not known."""
    looks = _as_they_ran(feed, law.points[-1].rate_per_s.best)
    if not looks:
        return ()
    middle_s = [median([look[at].own_s for look in looks]) for at in range(len(looks[0]))]
    whole_s = math.fsum(middle_s)
    rate = over(full(feed), lambda one: one.samples / one.seconds_s)
    batches_per_s = rate.best / feed.batch_size if rate else 0.0
    cpus = law.points[-1].cpus
    worked = _worked_ratio(feed, looks)
    found = []
    for at, facts in enumerate(looks[len(looks) // 2]):
        own_s = [look[at].own_s / feed.batch_size for look in looks]
        sample_s = spread(own_s) if min(own_s) > 0.0 else NOTHING
        threads = cpus if facts.parallel_calls < 0 else float(facts.parallel_calls)
        found.append(
            StageRate(
                facts=facts,
                sample_s=sample_s,
                share_ratio=middle_s[at] / whole_s if whole_s else 0.0,
                elements_per_s=median([look[at].elements for look in looks]) * batches_per_s,
                output_bytes_per_s=median([look[at].output_bytes for look in looks])
                * batches_per_s,
                most_per_s=min(threads, cpus) / (sample_s.best * worked) if sample_s.best else None,
            )
        )
    return tuple(found)
