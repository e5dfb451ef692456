"""Limit and delay of a batching server from what its answers may take."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfdyno.model.serving.batching import choose, most_per_s
from tfdyno.model.serving.queue import load_at, service_times

CPU = {1: 0.007, 8: 0.016, 64: 0.100}


def test_the_limit_is_what_the_promise_leaves_room_for() -> None:
    chosen = choose(CPU, 0.050)
    # 32 rows take 54 ms: with one such batch before its own a row would take 108 ms
    assert chosen.max_batch_size == 16
    assert chosen.holds
    assert chosen.reason.startswith("Up to 16 rows together take 28")
    assert "99 of 100" in chosen.reason


def test_a_tighter_promise_never_gets_a_larger_batch() -> None:
    limits = [choose(CPU, p99_s).max_batch_size for p99_s in (0.012, 0.02, 0.05, 0.2, 1.0)]
    assert limits == sorted(limits)


def test_what_one_row_does_not_keep_is_said_plainly() -> None:
    chosen = choose(CPU, 0.005)
    assert not chosen.holds
    assert (chosen.max_batch_size, chosen.max_delay_s, chosen.most_per_s) == (1, 0.0, 0.0)
    assert chosen.reason == "No batching keeps 5 ms: a single row takes 7 ms by itself."


def test_batches_that_bring_nothing_are_not_made() -> None:
    chosen = choose({1: 0.001, 2: 0.002, 4: 0.004}, 0.010)
    assert chosen.max_batch_size == 1
    assert chosen.max_delay_s == 0.0


def test_a_rate_is_answered_with_what_to_expect() -> None:
    easy, much = choose(CPU, 0.05, 100.0), choose(CPU, 0.05, 5_000.0)
    assert easy.holds
    assert easy.load is not None
    assert "at 100 rows/s a p99 of 17.2 ms is expected" in easy.reason
    assert not much.holds
    assert "5,000 rows/s is more than one server can answer" in much.reason


def test_the_promise_is_kept_at_the_rate_that_is_named() -> None:
    chosen = choose(CPU, 0.05)
    service_s = service_times(CPU)[: chosen.max_batch_size]
    load = load_at(service_s, chosen.most_per_s, chosen.max_delay_s)
    assert load is not None
    assert load.p99_s <= 0.05


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(p99_s=st.floats(0.002, 0.5), growth=st.floats(0.0, 1.0))
def test_a_looser_promise_never_carries_less(p99_s: float, growth: float) -> None:
    service_s = service_times({1: 0.002, 16: 0.002 * (1 + 15 * growth)})
    assert most_per_s(service_s, p99_s * 1.2) >= 0.99 * most_per_s(service_s, p99_s)


def test_no_more_than_enough_is_asked_of_the_server() -> None:
    assert choose({1: 0.005, 256: 0.008}, 0.05, enough_per_s=300.0).max_batch_size <= 4


@pytest.mark.parametrize(("p99_s", "rate"), [(0.0, None), (-1.0, None), (0.1, 0.0),
                                              (float("inf"), None)])  # fmt: skip
def test_a_promise_or_rate_out_of_range_is_refused(p99_s: float, rate: float | None) -> None:
    with pytest.raises(ValueError, match="need a p99 and a rate above 0"):
        choose(CPU, p99_s, rate)
