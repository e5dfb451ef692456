"""Replicas that wait for each other: by exchange, by link and by the slowest of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.rules.bottleneck.steps import HOST, OPERATIONS, drafts, facts, only, primary

from tfdyno.rules.bottleneck.communication import (
    sent_bytes,
    skew,
    slow_link,
    small_batch,
    small_buckets,
)
from tfdyno.rules.bottleneck.seen import look

if TYPE_CHECKING:
    from tfdyno.core.measure.step_facts import StepFacts

EXCHANGE = replace(OPERATIONS, class_s={"gemm": 0.008, "collective": 0.010})


def two(**changed: Any) -> StepFacts:
    """Two replicas that exchange gradients for 10 of 20 ms."""
    return facts(**({"replica_count": 2, "operations": EXCHANGE} | changed))


def test_a_rank_of_a_ring_sends_twice_what_the_others_have() -> None:
    # 2 (n - 1) / n: as much as there is for two ranks, one and a half times for four
    assert sent_bytes(look(two(parameter_bytes=1000))) == 1000.0
    assert sent_bytes(look(two(parameter_bytes=1000, replica_count=4))) == 1500.0


def test_a_batch_four_times_as_large_takes_away_six_tenths() -> None:
    found = only(small_batch, two())
    assert found.gain is not None
    assert found.gain.best == pytest.approx(20 / 14)
    assert found.settings == {"batch_size": "128"}
    assert primary(two()).cause == "communication.small_batch"


def test_one_replica_exchanges_nothing_unless_it_is_seen_to() -> None:
    assert not drafts(small_batch, two(replica_count=1, operations=OPERATIONS))
    # A profile is of one host, and tells no batch.
    alone = only(small_batch, two(replica_count=1, source="profile", batch_size=0))
    assert alone.values == {"share": "50 %", "factor": "4"}
    assert [one.source for one in alone.evidence] == ["profile"]


def test_an_exchange_that_no_profile_shows_is_told_from_its_sizes() -> None:
    # 12.4 MB at 5 GB/s and 20 messages of 30 us: 2.48 + 0.6 ms
    seen = two(operations=OPERATIONS, parameter_bytes=12_400_000, variable_count=20)
    found = only(small_batch, seen)
    assert found.gain is not None
    assert found.gain.best == pytest.approx(20 / (20 - 0.6 * 3.08))
    assert found.evidence[0].source == "sizes of the variables"


def test_many_small_variables_want_one_package() -> None:
    # 160 of 9 KiB
    seen = two(variable_count=160, parameter_bytes=160 * 9216)
    assert only(small_buckets, seen).cause == "communication.small_buckets"
    assert not drafts(small_buckets, two(variable_count=160, parameter_bytes=160 * 2**20))
    assert not drafts(small_buckets, two(variable_count=8))


def test_exchanges_that_the_profile_counts_are_told_instead_of_variables() -> None:
    # 400,000 bytes in 100 exchanges
    often = replace(EXCHANGE, collectives_per_step=100.0)
    found = only(small_buckets, two(operations=often))
    assert found.evidence[1].text == "100 exchanges a step of 3.91 KiB on average"
    assert found.values["count"] == "100"


def workers(**changed: Any) -> StepFacts:
    """A step of 20 ms with another worker, of which nothing is known but its CPU time."""
    host = replace(HOST, cpu_ratio=0.1, other_cpu_ratio=0.1)
    nothing = {"held_s": (), "operations": None, "input": None, "waits_s": 0.0}
    return two(**({"worker_count": 2, "source": "loop", "host": host} | nothing | changed))


def test_a_worker_that_does_nothing_waits_for_the_others() -> None:
    # 0.1 of 4 CPUs for 20 ms are 8 ms of work: 12 ms of 20 are waiting
    found = only(small_batch, workers())
    assert found.gain is not None
    assert found.gain.best == pytest.approx(20 / (20 - 0.6 * 12))
    told = "the worker does nothing for 12 ms of a step of 20 ms (60 %): it waits for the others"
    assert found.evidence[0].text == told


def test_a_worker_that_lacks_a_cpu_waits_for_nobody() -> None:
    busy = replace(HOST, cpu_ratio=0.1, other_cpu_ratio=0.88)
    found = only(small_batch, workers(host=busy, parameter_bytes=2_000_000))
    assert found.evidence[0].source == "sizes of the variables"


def test_a_link_is_called_slow_by_its_rate() -> None:
    # 100 MB in 10 ms are 10 GB/s; in 1 s of a longer step 0.1 GB/s
    assert not drafts(slow_link, two(parameter_bytes=100_000_000))
    slow = replace(OPERATIONS, class_s={"gemm": 0.1, "collective": 1.0}, busy_s=1.1)
    seen = two(parameter_bytes=100_000_000, operations=slow, worker_count=2,
               step_s=(1.12,) * 9, held_s=(1.11,) * 9)  # fmt: skip
    found = only(slow_link, seen)
    assert found.values["rate"] == "100 MB/s"


def test_the_slowest_worker_is_waited_for() -> None:
    # 18 against 10 ms, four fifths of the 8 go
    found = only(skew, facts(worker_count=2, worker_step_s=(0.010, 0.018)))
    assert found.gain is not None
    assert found.gain.best == pytest.approx(20 / (20 - 0.8 * 8))
    assert found.values["worker"] == "1"
    assert not drafts(skew, facts(worker_count=2, worker_step_s=(0.010, 0.0104)))
