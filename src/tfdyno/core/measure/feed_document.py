"""What ``data bench --json`` prints and ``--output`` writes: figures, and what they are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins
from tfdyno.core.base.interval import Interval
from tfdyno.core.measure.feed import Feed, FeedLaw, FeedNeed, Pace, StageRate

if TYPE_CHECKING:
    from tfdyno.core.measure.feed import FeedRound


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedReport:
    """A measured pipeline with its figures."""

    feed: Feed
    law: FeedLaw
    rate_per_s: Interval
    """Samples per second with all CPUs, as measured."""
    stages: tuple[StageRate, ...]
    """Sources first."""
    pace: Pace
    busy_cpus: float
    read_bytes_per_s: float
    """The rate from files with all CPUs; 0.0: nothing, or not known."""
    disk_per_s: float | None
    """Samples per second that the disk gives in order; None: not measured."""
    cold_per_s: Interval | None = None
    """Samples per second with the files forgotten."""
    cold_disk_ratio: float = 0.0
    """Share of what was read then that came from the disk."""
    other_ratio: float = 0.0
    """The share of the CPUs taken by everything else meanwhile."""
    first_per_s: Interval | None = None
    """The rate of the pass that filled a cache, where later ones were measured too."""
    grows: float | None = None
    """How the rate grows with the CPUs: 1 in proportion, 0 not at all."""
    needs: tuple[FeedNeed, ...] = ()

    @property
    def alone_per_s(self) -> Interval:
        """Samples per second with all CPUs if nothing else had run on them."""
        return self.law.points[-1].rate_per_s

    @property
    def cpus(self) -> float:
        """All that it could use."""
        return self.law.points[-1].cpus

    def fed_ratio(self, need: FeedNeed) -> Interval:
        """Share of a card's need that is given, from the lowest to the highest that it may be."""
        given, needed = self.alone_per_s, need.needed_per_s
        low, high = given.low / needed.high, given.high / needed.low
        return Interval(low=low, best=need.fed_ratio, high=high)


def data_bench_document(told: FeedReport) -> dict[str, Any]:
    """Write the documented keys; ``feed`` has all rounds, and is what ``advise --feed`` reads."""
    feed, law, rate = told.feed, told.law, told.rate_per_s
    batches_per_s = rate.best / feed.batch_size
    return {
        "workload": feed.reference,
        "title": feed.title,
        "kind": feed.kind,
        "batch_size": feed.batch_size,
        "samples_per_s": to_builtins(rate),
        "alone_samples_per_s": to_builtins(told.alone_per_s),
        "other_cpu_ratio": told.other_ratio,
        "batches_per_s": batches_per_s,
        "output_bytes_per_s": batches_per_s * feed.batch_bytes,
        "read_bytes_per_s": told.read_bytes_per_s,
        "cpu_s_per_sample": to_builtins(law.sample_cpu_s),
        "cpus": told.cpus,
        "busy_cpus": told.busy_cpus,
        "cpu_kind": feed.cpu_kind,
        "pace": told.pace,
        "stages": [_stage(one) for one in told.stages],
        "scaling": [_point(told, at) for at in range(len(law.points))],
        "limits": {
            "cpu_samples_per_s": told.cpus / law.sample_cpu_s.best
            if law.sample_cpu_s.best
            else None,
            "thread_samples_per_s": to_builtins(law.serial_per_s),
            "thread_stages": list(law.serial_stages),
            "disk_samples_per_s": told.disk_per_s,
        },
        "disk": _disk(told),
        "cold_samples_per_s": to_builtins(told.cold_per_s),
        "first_pass_samples_per_s": to_builtins(told.first_per_s),
        "needs": [_need(told, one) for one in told.needs],
        "environment": to_builtins(feed.environment),
        "measured_on": feed.measured_on,
        "stopped": feed.stopped,
        "notes": list(feed.notes),
        "rounds": [_round(one) for one in feed.rounds],
        "feed": to_builtins(feed),
    }


def _stage(one: StageRate) -> dict[str, Any]:
    facts = one.facts
    return {
        "title": facts.title,
        "kind": facts.kind,
        "place": facts.place,
        "operations": list(facts.operations),
        "parallel_calls": facts.parallel_calls,
        "runs_python": facts.runs_python,
        "thread_s_per_sample": to_builtins(one.sample_s),
        "share_ratio": one.share_ratio,
        "elements_per_s": one.elements_per_s,
        "output_bytes_per_s": one.output_bytes_per_s,
        "most_samples_per_s": one.most_per_s,
    }


def _point(told: FeedReport, at: int) -> dict[str, Any]:
    first, point = told.law.points[0], told.law.points[at]
    even = first.rate_per_s.best * point.cpus / first.cpus
    return {
        "cpus": point.cpus,
        "samples_per_s": to_builtins(point.rate_per_s),
        "efficiency_ratio": point.rate_per_s.best / even,
    }


def _disk(told: FeedReport) -> dict[str, Any] | None:
    disk = told.feed.disk
    if disk is None:
        return None
    return {
        **to_builtins(disk),
        "cold_bytes_per_s": disk.read_bytes / disk.cold_s,
        "warm_bytes_per_s": disk.read_bytes / disk.warm_s,
        "is_cold": told.disk_per_s is not None,
        "pipeline_from_disk_ratio": told.cold_disk_ratio,
    }


def _need(told: FeedReport, one: FeedNeed) -> dict[str, Any]:
    fewest, best, most = one.cpus
    fed = told.fed_ratio(one)
    return {
        "gpu": one.gpu,
        "batch_size": one.batch_size,
        "step_s": to_builtins(one.step_s),
        "samples_per_s": to_builtins(one.needed_per_s),
        "cpus": {"low": fewest, "best": best, "high": most},
        "fed_ratio": one.fed_ratio,
        "fed_interval": [fed.low, fed.high],
    }


def _round(one: FeedRound) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "cpus": one.cpus,
        "samples_per_s": one.samples / one.seconds_s,
        "cpu_s_per_sample": one.cpu_s / one.samples,
        "read_bytes_per_s": one.read_bytes / one.seconds_s,
        "disk_bytes_per_s": one.disk_bytes / one.seconds_s,
    }
