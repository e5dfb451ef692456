"""All-reduces that failed, were wrong, or slower than they should be."""

from __future__ import annotations

import pytest
from tests.rules.cluster.clusters import causes, cluster

from tfdyno.core.cluster.cluster_facts import AllReduce, Bandwidth, ClockReading, SizeTimes
from tfdyno.rules.cluster import cluster_findings, in_order

RIGHT = AllReduce(between="nodes", implementation="RING", replicas=2,
                  sizes=(SizeTimes(size_bytes=1 << 26, times_s=(0.5,) * 5),))  # fmt: skip


def bandwidth(best: float, high: float, expected: float | None, **given: str) -> Bandwidth:
    return Bandwidth(
        between="nodes", rank=0, implementation=given.get("implementation", "RING"), replicas=2,
        size_bytes=1 << 26, bus_bytes_per_s=best, low_bytes_per_s=best / 2, high_bytes_per_s=high,
        small_s=1e-3, expected_bytes_per_s=expected,
        expected_from=given.get("origin", "one connection carries 1 GB/s"),
    )  # fmt: skip


def test_a_failure_and_a_wrong_sum_are_errors() -> None:
    failed = AllReduce(between="nodes", rank=1, error="the process crashed (SIGABRT)")
    assert causes(cluster(all_reduces=(RIGHT, failed)), "error") == ["exchange_failed"]
    wrong = AllReduce(between="nodes", implementation="NCCL", replicas=2, is_right=False)
    assert causes(cluster(all_reduces=(wrong,)), "error") == ["wrong_sums"]


@pytest.mark.parametrize(
    ("best", "high", "expected", "given", "is_found"),
    [
        (1e6, 2e6, 1e8, {}, True),
        (1e6, 9e7, 1e8, {}, False),  # the interval reaches it
        (9e7, 1e8, 1e8, {}, False),
        (1e6, 2e6, None, {}, False),
        (6e10, 6e10, 1e11, {"implementation": "NCCL", "origin": "link catalogue"}, True),
        (6e10, 6e10, 1e11, {"implementation": "NCCL", "origin": "network interface"}, False),
    ],
)
def test_a_bandwidth_below_its_share_is_a_warning(
    best: float, high: float, expected: float | None, given: dict[str, str], is_found: bool
) -> None:
    facts = cluster(all_reduces=(RIGHT,))
    found = cluster_findings(facts, (bandwidth(best, high, expected, **given),))
    assert [one.cause for one in found] == ["cluster.slow_exchange"] * is_found
    assert ("all-reduce" in in_order(facts, found)) is not is_found


def test_errors_come_before_warnings() -> None:
    failed = AllReduce(between="nodes", rank=1, error="x")
    found = cluster_findings(cluster(all_reduces=(failed,)), (bandwidth(1e6, 1e6, 1e9),))
    assert [one.severity for one in found] == ["error", "warning"]


def test_what_was_looked_at_and_is_fine_is_told() -> None:
    fine = in_order(cluster(), ())
    assert "ports of 2 nodes" in fine
    assert "clocks within 2 ms" in fine
    assert "all-reduce" not in fine  # it was not measured
    near = ClockReading(rank=1, offset_s=1e-5, uncertainty_s=1e-4)
    assert "clocks within 1 ms" in in_order(cluster(clocks=(near,)), ())
