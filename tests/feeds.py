"""Measured input pipelines of a few numbers, for tests of what is made of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.advice import exactly

from tfdyno.core.measure.feed import DiskFacts, Feed, FeedLaw, FeedPoint, FeedRound
from tfdyno.core.measure.step_facts import StageFacts


def round_(per_s: float = 200.0, cpus: float = 2.0, **changes: Any) -> FeedRound:
    """A second with batches of ten that keeps all CPUs busy, and reads 1 kB a sample."""
    base = FeedRound(
        kind="warm",
        cpus=cpus,
        seconds_s=1.0,
        batches=round(per_s / 10),
        samples=round(per_s),
        cpu_s=cpus,
        read_bytes=round(per_s) * 1000,
    )
    return replace(base, **changes)


def stage(title: str, milliseconds: float, **changes: Any) -> StageFacts:
    """A stage of one thread with so much work for a batch of ten."""
    base = StageFacts(
        title=title,
        kind=title.partition("(")[0],
        own_s=milliseconds * 1e-3,
        output_bytes=10_000,
        elements=10.0,
    )
    return replace(base, **changes)


STAGES = (
    stage("from_tensor_slices", 0.1),
    stage("shuffle", 0.3, buffer_size=100),
    stage("map(load)", 95.0, place="train.py:9", parallel_calls=-1, operations=("DecodeJpeg",)),
    stage("batch", 4.6, elements=1.0),
    stage("prefetch", 0.0, elements=1.0, buffer_size=-1),
)
"""100 ms of threads for a batch of ten."""
DISK = DiskFacts(
    files=100, total_bytes=100_000, read_files=100, read_bytes=100_000, cold_s=0.1, warm_s=0.01,
    disk_bytes=100_000, file_system="ext4",
)  # fmt: skip


def feed(**changes: Any) -> Feed:
    """200 samples/s on two full CPUs, 110 on one: 10 ms of a CPU for each sample."""
    base = Feed(
        reference="train.py",
        title="net",
        kind="dataset",
        batch_size=10,
        batch_bytes=10_000,
        samples_per_epoch=1000,
        start_s=0.1,
        rounds=(round_(200.0, 2.0), round_(110.0, 1.0)) * 2,
        looks=(STAGES, STAGES),
        disk=DISK,
        measured_on="2026-11-20",
    )
    return replace(base, **changes)


def law(*rates: tuple[float, float], **changes: Any) -> FeedLaw:
    """Points of (CPUs, samples per second) that are known exactly."""
    points = tuple(FeedPoint(cpus=cpus, rate_per_s=exactly(rate)) for cpus, rate in rates)
    return replace(FeedLaw(points=points, sample_cpu_s=exactly(0.01)), **changes)
