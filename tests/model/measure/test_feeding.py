"""What more or fewer CPUs give, and what a step makes of it: all worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.advice import estimate, exactly
from tests.feeds import law

from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.advice import Assumed
from tfdyno.core.measure.feed import Feeding, FeedPoint
from tfdyno.model.measure.feeding import (
    MOST_CPUS,
    cpus_for,
    exponent_of,
    fed,
    feeding,
    need_of,
    needed_by,
    rate_at,
    rising,
)

ASSUMED = Assumed(
    spot_overhead_ratio=0.0,
    electricity_usd_per_kwh=0.2,
    default_samples=1_000_000,
    default_batch_size=32,
    vcpu_core_ratio=0.6,
    offer_cpu_ratio=0.8,
    feed_loss_ratio=0.1,
)
FULL = law((1.0, 100.0), (4.0, 400.0))
"""In proportion to the CPUs."""
HALF = law((1.0, 100.0), (4.0, 200.0))
"""Exponent log 2 / log 4 = 1/2."""


@pytest.mark.parametrize(
    ("cpus", "per_s"),
    [(0.5, 50.0), (1.0, 100.0), (2.0, 100.0 * 2**0.5), (4.0, 200.0), (16.0, 400.0)],
)
def test_the_rate_follows_the_measured_points(cpus: float, per_s: float) -> None:
    # by hand: below 1 in proportion; r(n) = 100 n^0.5 between and beyond: 100 * 16^0.5 = 400
    assert rate_at(HALF, cpus, loss_ratio=0.0).best == pytest.approx(per_s)


def test_beyond_the_measured_cpus_the_low_end_loses_a_share_with_each_doubling() -> None:
    # by hand: 16 CPUs are two doublings of 4: 400 * 4 = 1600, low 1600 * 0.9^2 = 1296
    found = rate_at(FULL, 16.0, loss_ratio=0.1)
    assert (found.low, found.best, found.high) == pytest.approx((1296.0, 1600.0, 1600.0))


def test_of_one_measured_number_of_cpus_the_best_figure_loses_too() -> None:
    # by hand: one doubling: high 200, best 200 * 0.9, low 200 * 0.9^2
    found = rate_at(law((1.0, 100.0)), 2.0, loss_ratio=0.1)
    assert (found.low, found.best, found.high) == pytest.approx((162.0, 180.0, 200.0))
    assert exponent_of(law((1.0, 100.0))) is None


def test_more_cpus_than_measured_give_no_less_than_was_measured() -> None:
    # by hand: no growth at all, and 10 % lost with each of five doublings, is still 200
    flat = law((1.0, 200.0), (2.0, 200.0))
    assert rate_at(flat, 64.0, loss_ratio=0.1).low == 200.0


def test_stages_of_one_thread_give_no_more_with_more_cpus() -> None:
    held = law((1.0, 100.0), (4.0, 400.0), serial_per_s=Interval(low=450.0, best=500.0, high=600.0))
    found = rate_at(held, 64.0, loss_ratio=0.0)
    assert (found.low, found.best, found.high) == (450.0, 500.0, 600.0)
    assert rate_at(held, 4.0, loss_ratio=0.0).best == 400.0


def test_the_range_of_the_growth_is_that_of_the_two_rates() -> None:
    points = (
        FeedPoint(cpus=1.0, rate_per_s=Interval(low=80.0, best=100.0, high=125.0)),
        FeedPoint(cpus=2.0, rate_per_s=Interval(low=125.0, best=160.0, high=200.0)),
    )
    found = exponent_of(law().__class__(points=points, sample_cpu_s=exactly(0.01)))
    # by hand: 125/125 -> 0; log2(1.6) = 0.678; 200/80 = 2.5 -> more than in proportion, so 1
    assert found is not None
    assert (found.low, found.best, found.high) == pytest.approx((0.0, 0.678, 1.0), abs=1e-3)


def test_no_cpu_gives_no_answer() -> None:
    with pytest.raises(ValueError, match="need some CPU"):
        rate_at(FULL, 0.0, loss_ratio=0.0)


def test_more_cpus_never_give_less_but_by_noise() -> None:
    points = [
        FeedPoint(cpus=2.0, rate_per_s=Interval(low=90.0, best=95.0, high=120.0)),
        FeedPoint(cpus=1.0, rate_per_s=exactly(100.0)),
    ]
    one, two = rising(points)
    assert (one.cpus, two.cpus) == (1.0, 2.0)
    assert (two.rate_per_s.low, two.rate_per_s.best, two.rate_per_s.high) == (100.0, 100.0, 120.0)


def test_the_cpus_that_feed_a_card() -> None:
    # by hand: 2,000 samples/s at 100 a CPU: 20 CPUs; the most lose 10 % a doubling beyond four
    fewest, best, most = cpus_for(FULL, exactly(2000.0), loss_ratio=0.0)
    assert fewest == best == most == pytest.approx(20.0)
    fewest, best, most = cpus_for(FULL, exactly(1296.0), loss_ratio=0.1)
    assert (fewest, best, most) == pytest.approx((12.96, 12.96, 16.0))


def test_a_range_of_the_need_is_one_of_the_cpus() -> None:
    need = Interval(low=400.0, best=800.0, high=1200.0)
    assert cpus_for(FULL, need, loss_ratio=0.0) == pytest.approx((4.0, 8.0, 12.0))


def test_what_one_thread_holds_back_no_number_of_cpus_feeds() -> None:
    held = law((1.0, 100.0), (4.0, 400.0), serial_per_s=Interval(low=450.0, best=500.0, high=600.0))
    fewest, best, most = cpus_for(held, exactly(550.0), loss_ratio=0.0)
    assert fewest == pytest.approx(5.5)
    assert (best, most) == (None, None)


def test_a_card_needs_its_batch_over_its_step() -> None:
    # by hand: 100 samples in 0.1 s (0.05 to 0.2): 1,000 (500 to 2,000); 400 feed 0.4 of it
    step = estimate(step_s=Interval(low=0.05, best=0.1, high=0.2))
    needed = needed_by(step)
    assert (needed.low, needed.best, needed.high) == (500.0, 1000.0, 2000.0)
    need = need_of(FULL, step, gpu_name="Card", loss_ratio=0.0)
    assert need.fed_ratio == pytest.approx(0.4)
    assert need.cpus == pytest.approx((5.0, 10.0, 20.0))
    assert (need.gpu, need.gpu_name, need.batch_size) == ("card", "Card", 100)


def test_vcpus_of_an_offer_are_threads_of_unknown_speed() -> None:
    # by hand: 8 vCPUs like the measured ones give 800/s; 0.8 to 1.25 times as fast
    given_ = feeding(FULL, estimate(), vcpus=8, cpu_kind="thread", assumed=ASSUMED)
    low = 800.0 * 0.9 * 0.8
    assert (given_.rate_per_s.low, given_.rate_per_s.best) == pytest.approx((low, 800.0))
    assert given_.rate_per_s.high == pytest.approx(1000.0)
    assert given_.fed_ratio == pytest.approx(0.8)
    assert given_.is_short


def test_a_vcpu_is_less_than_a_whole_core() -> None:
    # by hand: 10 vCPUs are 6 cores of the measured machine: 600/s
    given_ = feeding(FULL, estimate(), vcpus=10, cpu_kind="core", assumed=ASSUMED)
    assert given_.rate_per_s.best == pytest.approx(600.0)


def test_an_offer_without_vcpus_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one vCPU"):
        feeding(FULL, estimate(), vcpus=0, cpu_kind="core", assumed=ASSUMED)


def short(rate: Interval) -> Feeding:
    needed = needed_by(estimate())
    return Feeding(vcpus=8, rate_per_s=rate, needed_per_s=needed, fed_ratio=rate.best / needed.best)


def test_a_step_takes_as_long_as_its_batch_needs_to_be_made() -> None:
    # by hand: 100 samples at 500/s take 0.2 s (400 to 800/s: 0.25 to 0.125 s), the step 0.1 s;
    # it waits 0.1 s at 50 W: 30 J + 5 J; the card's peak is used half as much
    found = fed(
        estimate(energy_kwh_per_epoch=exactly(3.0)),
        short(Interval(low=400.0, best=500.0, high=800.0)),
        waiting_w=exactly(50.0),
    )
    assert (found.step_s.low, found.step_s.best, found.step_s.high) == (0.125, 0.2, 0.25)
    assert (found.samples_per_s.low, found.samples_per_s.best) == (400.0, 500.0)
    assert found.terms_s["input"] == pytest.approx(0.1)
    assert found.bound_by == "input"
    assert found.energy_j_per_step.best == pytest.approx(35.0)
    assert found.energy_kwh_per_epoch
    assert found.energy_kwh_per_epoch.best == pytest.approx(3.5)
    assert found.mfu_ratio == pytest.approx(0.125)


def test_a_step_that_is_fed_in_time_stays_as_it_is() -> None:
    own = estimate()
    quick = replace(own, forward_ratio=0.3)
    ample = fed(quick, short(exactly(1000.0)), waiting_w=exactly(50.0))
    assert ample == replace(quick, forward_ratio=1.0)  # a pass of validation reads as fast
    assert fed(quick, short(exactly(1e6)), waiting_w=exactly(50.0)) == quick


def test_input_that_may_be_late_widens_the_range_alone() -> None:
    found = fed(
        estimate(), short(Interval(low=500.0, best=1500.0, high=2000.0)), waiting_w=exactly(50.0)
    )
    assert (found.step_s.best, found.step_s.high) == (0.1, 0.2)
    assert found.bound_by == "memory"
    assert found.terms_s["input"] == 0.0


rates = st.floats(1.0, 1e5)


@given(one=rates, growth=st.floats(1.0, 4.0), few=st.floats(0.1, 2000.0), times=st.floats(1.0, 2.0))
def test_more_cpus_never_feed_less(one: float, growth: float, few: float, times: float) -> None:
    measured = law((1.0, one), (4.0, one * growth))
    less = rate_at(measured, few, loss_ratio=0.1)
    more = rate_at(measured, few * times, loss_ratio=0.1)
    assert more.best >= less.best * (1 - 1e-9)
    assert more.low >= less.low * (1 - 1e-9)
    assert less.low <= less.best <= less.high


@given(one=rates, growth=st.floats(1.05, 4.0), share=st.floats(0.01, 50.0))
def test_the_cpus_that_are_named_give_what_is_needed(
    one: float, growth: float, share: float
) -> None:
    measured = law((1.0, one), (4.0, one * growth))
    _, best, _ = cpus_for(measured, exactly(one * share), loss_ratio=0.0)
    if best is None:
        assert rate_at(measured, MOST_CPUS, loss_ratio=0.0).best < one * share
    else:
        assert rate_at(measured, best, loss_ratio=0.0).best == pytest.approx(one * share, rel=1e-6)
