"""model/trial_law: spreads, lines and verdicts by hand, and what holds for all numbers."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tfdyno.core.base.interval import Interval
from tfdyno.model.measure.statistics import student_t_quantile
from tfdyno.model.measure.trial_law import (
    LEAST_DEGREES,
    LEAST_MARGIN_RATIO,
    LEAST_SPREAD_RATIO,
    PROBABILITY,
    UNTIMED_MARGIN_RATIO,
    Point,
    Spread,
    interval,
    is_behind,
    learned,
    line,
    middle,
    moved_ratio,
    noise,
    spread,
    surest,
    suspects,
)

KNOWN = Spread(log_ratio=0.05, degrees=10)
RATES = st.floats(1.0, 1e6)


def points(arm: str, *values: tuple[int, float]) -> list[Point]:
    return [Point(arm=arm, batch_size=size, value=value) for size, value in values]


def test_the_spread_is_pooled_within_trials() -> None:
    # logs 0 and 0.2 about 0.1; 1.0 and 1.2 about 1.1: squares 4 * 0.01 over 2 degrees
    groups = [[1.0, math.exp(0.2)], [math.exp(1.0), math.exp(1.2)], [7.0]]
    found = spread(groups)
    assert found.degrees == 2
    assert found.log_ratio == pytest.approx(math.sqrt(0.04 / 2))


def test_runs_that_agree_by_chance_leave_a_spread() -> None:
    assert spread([[5.0, 5.0, 5.0]]) == Spread(log_ratio=LEAST_SPREAD_RATIO, degrees=2)
    assert not spread([]).is_known


def test_the_middle_is_the_geometric_mean() -> None:
    assert middle([2.0, 8.0]) == pytest.approx(4.0)


def test_an_interval_needs_a_known_spread() -> None:
    low, high = interval([100.0, 100.0], KNOWN)
    half = student_t_quantile(0.995, 10) * 0.05 / math.sqrt(2)  # 3.169 * 0.05 / 1.414
    assert half == pytest.approx(0.112, abs=0.001)
    assert (low, high) == pytest.approx((100 * math.exp(-half), 100 * math.exp(half)))
    assert interval([100.0], Spread(log_ratio=0.05, degrees=LEAST_DEGREES - 1)) == (0.0, 0.0)


def test_a_trial_is_behind_where_runs_noise_and_margin_cannot_explain_it() -> None:
    # t at 99 % and 10 degrees is 2.764; one run against three: 2.764 * 0.05 * sqrt(4/3) = 0.1596
    allowed = 2.7638 * 0.05 * math.sqrt(4 / 3) + math.log1p(LEAST_MARGIN_RATIO)
    best = [100.0] * 3
    assert is_behind([100 * math.exp(-allowed) * 0.999], best, KNOWN, moved=0.0)
    assert not is_behind([100 * math.exp(-allowed) * 1.001], best, KNOWN, moved=0.0)
    assert not is_behind([100 * math.exp(-allowed) * 0.999], best, KNOWN, moved=0.01)


def test_where_nothing_is_timed_beside_a_trial_has_to_be_far_behind() -> None:
    allowed = noise(1, 3, KNOWN) + math.log1p(UNTIMED_MARGIN_RATIO)
    assert is_behind([100 * math.exp(-allowed) * 0.999], [100.0] * 3, KNOWN, moved=None)
    assert not is_behind([100 * math.exp(-allowed) * 1.001], [100.0] * 3, KNOWN, moved=None)


def test_a_trial_whose_own_runs_spread_more_is_judged_by_them() -> None:
    calm = Spread(log_ratio=0.01, degrees=10)
    assert is_behind([80.0, 80.0], [100.0] * 3, calm, moved=0.0)
    assert not is_behind([60.0, 80.0 * 80.0 / 60.0], [100.0] * 3, calm, moved=0.0)


def test_how_much_the_machine_moved_is_told_by_what_is_timed_beside() -> None:
    assert moved_ratio([1.1, 1.1], [1.0, 1.0]) == pytest.approx(math.log(1.1))
    assert moved_ratio([], [1.0]) is None
    assert moved_ratio([1.0, 0.0], [1.0]) is None


def test_nothing_is_behind_while_the_spread_is_not_known() -> None:
    unknown = Spread(log_ratio=0.01, degrees=LEAST_DEGREES - 1)
    assert not is_behind([1.0], [100.0], unknown, moved=0.0)
    assert noise(3, 3, unknown) == 0.0


def test_an_estimate_is_widened_from_95_to_99_percent_at_each_end() -> None:
    low, high = surest(Interval(low=50.0, best=100.0, high=200.0))
    # 2 ** (2.3263 / 1.6449) = 2.665
    assert (low, high) == pytest.approx((100 / 2.665, 266.5), rel=1e-3)


def test_trials_of_the_study_tell_how_far_estimates_are_off() -> None:
    known = [(120.0, 100.0)] * 4  # always 1.2 times as fast as estimated
    # no spread but the least, 1 %: t at 3 degrees 4.541 * 0.01 * sqrt(1.25) = 0.0508
    ends = 120 * math.exp(-0.0508), 120 * math.exp(0.0508)
    assert learned(100.0, known) == pytest.approx(ends, rel=1e-3)
    assert learned(100.0, known[:LEAST_DEGREES]) is None


def test_a_line_is_read_between_and_beside_its_points() -> None:
    found = line(points("a", (1, 2.0), (2, 3.0), (3, 4.0), (4, 5.0), (8, 9.0)), "a", 6)
    assert found
    assert found.best == pytest.approx(7.0)  # 1 + 1 * 6
    assert found.low < 7.0 < found.high


def test_no_line_reaches_far_beyond_what_was_measured() -> None:
    known = points("a", (8, 9.0), (10, 11.0), (12, 13.0), (14, 15.0), (16, 17.0))
    assert line(known, "a", 32)
    assert line(known, "a", 33) is None
    assert line(known, "a", 4)
    assert line(known, "a", 3) is None


def test_an_arm_without_two_batches_and_too_few_points_have_no_line() -> None:
    rich = points("a", (1, 2.0), (2, 3.0), (3, 4.0), (4, 5.0), (8, 9.0))
    assert line([*rich, *points("b", (4, 1.0))], "b", 4) is None
    assert line([*rich, *points("b", (4, 1.0), (4, 1.1))], "b", 4) is None
    assert line(rich[:4], "a", 2) is None  # two degrees of freedom
    assert line([*rich, *points("b", (4, 1.0), (8, 2.0))], "b", 6)  # the spread of a is pooled


def test_a_line_that_fits_badly_has_a_wide_interval() -> None:
    straight = line(points("a", (1, 2.0), (2, 3.0), (3, 4.0), (4, 5.0), (8, 9.0)), "a", 6)
    bent = line(points("a", (1, 2.0), (2, 4.0), (3, 3.5), (4, 6.5), (8, 9.0)), "a", 6)
    assert straight
    assert bent
    assert bent.high - bent.low > 5 * (straight.high - straight.low)


def test_what_only_the_failed_trial_has_is_suspected() -> None:
    failed = {"input.cache": "true", "execution": "xla"}
    assert suspects(failed, [{"execution": "xla"}]) == (("input.cache", "true"),)
    assert suspects(failed, []) == tuple(failed.items())


@given(rates=st.lists(RATES, min_size=1, max_size=5), scale=st.floats(0.1, 10.0))
def test_the_unit_of_a_rate_decides_nothing(rates: list[float], scale: float) -> None:
    best = [2 * rate for rate in rates]
    widest = max(0.05, spread([rates]).log_ratio)
    gap = abs(math.log(2.0) - 2.7638 * widest * math.sqrt(2 / len(rates)) - math.log(1.02))
    assume(gap > 1e-3)
    scaled = ([rate * scale for rate in rates], [rate * scale for rate in best])
    assert is_behind(rates, best, KNOWN, moved=0.0) == is_behind(*scaled, KNOWN, moved=0.0)


@given(rate=RATES, faster=st.floats(1.0, 100.0))
def test_who_is_faster_is_never_behind(rate: float, faster: float) -> None:
    assert not is_behind([rate * faster], [rate], KNOWN, moved=0.0)


@given(fixed=st.floats(0.001, 10.0), per_sample=st.floats(0.001, 1.0), size=st.integers(8, 128))
def test_a_straight_line_is_found_whatever_it_is(
    fixed: float, per_sample: float, size: int
) -> None:
    known = points("a", *((b, fixed + per_sample * b) for b in (8, 16, 32, 64, 128)))
    found = line(known, "a", size)
    assert found
    assert found.best == pytest.approx(fixed + per_sample * size, rel=1e-6)
    assert found.low <= found.best <= found.high


def test_the_probability_holds_where_errors_are_as_they_are_taken_to_be() -> None:
    """2,000 studies of equal trials: so many false ends in a hundred as the law says, or fewer."""
    draw = random.Random(20261124)
    behind = outside = lines = 0
    for _ in range(2000):
        groups = [[math.exp(draw.gauss(0, 0.05)) for _ in range(3)] for _ in range(4)]
        behind += is_behind(groups[0][:1], groups[1], spread(groups[1:]), moved=0.0)
        known = points("a", *((b, (1 + 0.1 * b) * math.exp(draw.gauss(0, 0.05)))
                              for b in (8, 16, 32, 64, 96, 128)))  # fmt: skip
        found = line(known, "a", 80)
        if found:
            lines += 1
            outside += 9.0 * math.exp(draw.gauss(0, 0.05)) < found.low
    assert lines == 2000
    assert behind / 2000 < 1.5 * (1 - PROBABILITY)
    assert outside / lines < 2.0 * (1 - PROBABILITY)


def is_best_ended(draw: random.Random, trials: int) -> bool:
    """One study in which the machine's own speed drifts by 5 % and nothing tells of it.

    All recipes are equally fast but one that is 5 % faster; runs of a trial spread by 1 %.
    """
    best_at = draw.randrange(1, trials)
    ended: list[list[float]] = []
    whole: list[list[float]] = []
    for at in range(trials):
        level = (1.05 if at == best_at else 1.0) * math.exp(draw.gauss(0, 0.05))
        rates: list[float] = []
        for _ in range(3):
            rates.append(level * math.exp(draw.gauss(0, 0.01)))
            fastest = max(whole, key=middle, default=[])
            if len(rates) < 3 and is_behind(rates, fastest, spread([*ended, *whole]), moved=None):
                break
        if len(rates) < 3 and at == best_at:
            return True
        (whole if len(rates) == 3 else ended).append(rates)
    return False


@pytest.mark.parametrize("trials", [12, 40])
def test_a_machine_that_drifts_unseen_ends_the_best_in_two_of_a_hundred_studies(
    trials: int,
) -> None:
    draw, studies = random.Random(20261125), 600
    assert sum(is_best_ended(draw, trials) for _ in range(studies)) <= 0.02 * studies
