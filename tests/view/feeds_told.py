"""A measured pipeline as the views are given it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.advice import exactly
from tests.feeds import STAGES, feed, law

from tfdyno.core.base.interval import Interval
from tfdyno.core.measure.feed import FeedNeed, StageRate
from tfdyno.core.measure.feed_document import FeedReport

RATES = tuple(
    StageRate(
        facts=facts,
        sample_s=exactly(facts.own_s / 10),
        share_ratio=facts.own_s / 0.1,
        elements_per_s=facts.elements * 20,
        output_bytes_per_s=200_000.0,
        most_per_s=10 / facts.own_s if facts.own_s else None,
    )
    for facts in STAGES
)
A100 = FeedNeed(
    gpu="a100", gpu_name="A100", batch_size=10, step_s=exactly(0.025),
    needed_per_s=Interval(low=300.0, best=400.0, high=500.0), fed_ratio=0.5, cpus=(2.8, 4.0, 5.4),
)  # fmt: skip


def told(**changes: Any) -> FeedReport:
    """200 samples/s on two full CPUs, 110 on one."""
    base = FeedReport(
        feed=feed(),
        law=law((1.0, 110.0), (2.0, 200.0), serial_per_s=exactly(2174.0), serial_stages=("batch",)),
        rate_per_s=Interval(low=190.0, best=200.0, high=210.0),
        stages=RATES,
        pace="cpu",
        busy_cpus=1.96,
        read_bytes_per_s=200_000.0,
        disk_per_s=1000.0,
        cold_per_s=Interval(low=30.0, best=40.0, high=50.0),
        cold_disk_ratio=0.5,
        grows=0.86,
        needs=(A100,),
    )
    return replace(base, **changes)
