"""What sets the pace of a measured pipeline: its CPUs, one thread, Python, the disk, or neither."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno.model.measure.feed_law import (
    ORDER,
    busy_cpus,
    full,
    rounds_of,
    stage_rates,
    wanted_cpus,
)
from tfdyno.model.measure.feeding import exponent_of
from tfdyno.model.measure.statistics import mean

if TYPE_CHECKING:
    from tfdyno.core.measure.feed import DiskFacts, Feed, FeedLaw, Pace

FULL_RATIO = 0.85
"""CPUs busier than this are full: the rest goes to switching and to the system."""
NEAR_RATIO = 0.7
"""What gives so much of a limit is held by it."""
PYTHON_EXPONENT = 0.5
"""Python code whose rate grows less than this with the CPUs is held by its lock."""
FORGOTTEN_RATIO = 0.5
"""Files of which so much came from the disk were cold."""


def are_full(feed: Feed) -> bool:
    """Return whether the pipeline would take all CPUs if nothing else did."""
    rounds = full(feed)
    return mean([wanted_cpus(one) for one in rounds]) >= FULL_RATIO * rounds[0].cpus


def read_per_sample_bytes(feed: Feed) -> float:
    """Return bytes of files behind one sample; 0.0: not known.

    By the rounds that stand for the pipeline; by others where those read nothing, for a cache was
    full.
    """
    for kind in ORDER:
        rounds = rounds_of(feed, kind)
        if read := sum(one.read_bytes for one in rounds):
            return read / sum(one.samples for one in rounds)
    return 0.0


def read_bytes_per_s(feed: Feed) -> float:
    """Return bytes/s from files, wherever they lay, with all CPUs; 0.0: nothing, or not known."""
    rounds = full(feed)
    spent_s = math.fsum(one.seconds_s for one in rounds)
    return sum(one.read_bytes for one in rounds) / spent_s if spent_s else 0.0


def is_cold(disk: DiskFacts) -> bool:
    """Return whether the first reading really came from the disk."""
    return disk.disk_bytes >= FORGOTTEN_RATIO * disk.read_bytes > 0


def disk_per_s(feed: Feed) -> float | None:
    """Return samples per second that the disk gives when read in order; None: not measured."""
    per_sample = read_per_sample_bytes(feed)
    if feed.disk is None or not per_sample or not is_cold(feed.disk):
        return None
    return feed.disk.read_bytes / feed.disk.cold_s / per_sample


def pace(feed: Feed, law: FeedLaw) -> Pace:
    """Return what sets the pace of the pipeline where it was measured."""
    here = law.points[-1]
    if feed.kind == "generator" or _is_locked(feed, law):
        return "python"
    if are_full(feed):
        return "cpu"
    if law.serial_per_s and here.rate_per_s.best >= NEAR_RATIO * law.serial_per_s.best:
        return "thread"
    disk = disk_per_s(feed)
    read, from_disk = (
        sum(getattr(one, name) for one in full(feed)) for name in ("read_bytes", "disk_bytes")
    )
    is_cold_read = 0 < FORGOTTEN_RATIO * read <= from_disk
    if disk and is_cold_read and here.rate_per_s.best >= NEAR_RATIO * disk:
        return "disk"
    return "waiting"


def _is_locked(feed: Feed, law: FeedLaw) -> bool:
    """Return whether most of the work is Python's and more CPUs do not help it."""
    if feed.kind == "pydataset":
        runs_python = not feed.uses_processes
    else:
        rates = stage_rates(feed, law)
        runs_python = math.fsum(one.share_ratio for one in rates if one.facts.runs_python) > 0.5
    grows = exponent_of(law)
    return runs_python and (
        grows.best < PYTHON_EXPONENT if grows else busy_cpus(feed) >= FULL_RATIO
    )
