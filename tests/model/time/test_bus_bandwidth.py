"""Bus bandwidth by hand, and what a ring should reach."""

from __future__ import annotations

import pytest

from tfdyno.model.time.bus_bandwidth import (
    bus_bytes_per_s,
    expected_bytes_per_s,
    spread_bytes_per_s,
)


@pytest.mark.parametrize(("replicas", "expected"), [(2, 1e9), (4, 1.5e9), (8, 1.75e9)])
def test_bus_bandwidth_matches_the_hand_calculation(replicas: int, expected: float) -> None:
    assert bus_bytes_per_s(1e9, replicas, 1.0) == pytest.approx(expected)  # 2 (n-1)/n of 1 GB/s


def test_one_replica_has_nothing_to_exchange() -> None:
    with pytest.raises(ValueError, match="two replicas"):
        bus_bytes_per_s(1e9, 1, 1.0)


def test_the_slow_repeats_are_the_low_bound() -> None:
    low, best, high = spread_bytes_per_s(1e9, 2, [1.0] * 9 + [4.0, 0.5])
    assert best == pytest.approx(1e9)
    assert low < best < high


def test_without_latency_a_ring_reaches_its_link_and_with_it_less() -> None:
    assert expected_bytes_per_s(1e9, 8, 5e9, 0.0) == pytest.approx(5e9)
    # 1 GB over 8: 0.35 s on the link, 14 hops of 25 ms take as long again.
    assert expected_bytes_per_s(1e9, 8, 5e9, 0.025) == pytest.approx(2.5e9)
