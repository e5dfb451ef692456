from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.turns import loops_of

from tfdyno.model.measure.steady import LEAST_SAMPLES, steady_from


def steps(
    draw: random.Random, count: int, level_s: float = 0.1, spread: float = 0.02
) -> list[float]:
    return [level_s * math.exp(draw.gauss(0.0, spread)) for _ in range(count)]


def heavy(draw: random.Random, count: int) -> list[float]:
    """Noise with Student's t of two degrees of freedom: its variance is infinite."""
    return [
        0.1 * math.exp(0.03 * draw.gauss(0.0, 1.0) / math.sqrt(draw.gammavariate(1.0, 1.0)))
        for _ in range(count)
    ]


def wandering(draw: random.Random, count: int) -> list[float]:
    """Noise of 5 % whose neighbours are alike (correlation 0.8): a machine that others use too."""
    found, now = [], 0.0
    for _ in range(count):
        now = 0.8 * now + draw.gauss(0.0, 0.05 * 0.6)
        found.append(0.1 * math.exp(now))
    return found


@pytest.mark.parametrize("count", [30, 100, 500, 2000])
@pytest.mark.parametrize("spread", [0.01, 0.05])
def test_pure_noise_is_steady_from_the_start(count: int, spread: float) -> None:
    draw = random.Random(count)
    found = [steady_from(steps(draw, count, spread=spread)) for _ in range(20)]
    assert sum(at <= 2 for at in found) >= 19


@pytest.mark.parametrize("make", [heavy, wandering])
def test_noise_of_other_kinds_ends_in_time_for_most_runs(make: object) -> None:
    draw = random.Random(8)
    left = [300 - steady_from(make(draw, 300)) for _ in range(20)]  # type: ignore[operator]
    assert sum(samples >= 150 for samples in left) >= 17


@pytest.mark.parametrize(
    ("ratio", "spread"), [(1.05, 0.01), (1.1, 0.02), (1.2, 0.03), (1.5, 0.05), (4.0, 0.05)]
)
@pytest.mark.parametrize("count", [60, 150, 400])
def test_the_end_of_a_slower_warm_up_is_found_within_two_samples(
    ratio: float, spread: float, count: int
) -> None:
    draw = random.Random(count)
    found = [
        steady_from(steps(draw, 20, 0.1 * ratio, spread) + steps(draw, count, 0.1, spread))
        for _ in range(20)
    ]
    assert sum(abs(at - 20) <= 2 for at in found) >= 18


def test_the_compile_at_the_start_is_left_out() -> None:
    draw = random.Random(1)
    assert steady_from([12.0, *steps(draw, 60)]) == 1
    assert steady_from([12.0, 0.8, 0.3, *steps(draw, 60)]) in (3, 4)


def test_one_spike_is_no_changepoint() -> None:
    draw = random.Random(2)
    assert steady_from([*steps(draw, 50), 2.0, *steps(draw, 50)]) == 0


def test_a_second_compile_to_another_level_starts_anew() -> None:
    draw = random.Random(3)
    assert steady_from([*steps(draw, 80), 6.0, *steps(draw, 60, 0.08)]) == 81


def test_a_neighbour_on_the_machine_now_and_then_does_not_start_it_anew() -> None:
    draw = random.Random(4)
    rounds = [steps(draw, 30) + steps(draw, 6, 0.15) for _ in range(8)]
    assert steady_from([sample for one in rounds for sample in one]) == 0


def test_a_ramp_of_warm_up_is_left_out_until_it_is_nearly_over() -> None:
    draw = random.Random(5)
    ramp = [value * (1 + 0.5 * math.exp(-at / 10)) for at, value in enumerate(steps(draw, 200))]
    # within 2-5 % of the level after 10 ln 25 = 32 and 10 ln 10 = 23 samples
    assert 20 <= steady_from(ramp) <= 45


def test_a_slow_drift_leaves_its_last_stretch() -> None:
    draw = random.Random(6)
    drift = [value * (1 + 0.2 * at / 500) for at, value in enumerate(steps(draw, 500))]
    assert 250 <= steady_from(drift) <= 490


def test_without_a_stretch_of_enough_samples_there_is_no_steady_state() -> None:
    draw = random.Random(7)
    climbing = [0.1 * 1.1**at for at in range(60)]
    assert steady_from(climbing) == len(climbing)
    assert steady_from([*steps(draw, 20), *steps(draw, 8, 0.3)]) == 28


def test_the_last_samples_decide_nothing_while_they_are_few() -> None:
    draw = random.Random(7)
    assert steady_from([*steps(draw, 60), *steps(draw, 8, 0.3)]) == 0
    assert steady_from([*steps(draw, 60), *steps(draw, 12, 0.3)]) == 60


@pytest.mark.parametrize("count", range(LEAST_SAMPLES))
def test_too_few_samples_are_no_steady_state(count: int) -> None:
    assert steady_from([0.1] * count) == count


def test_equal_samples_are_steady() -> None:
    assert steady_from([0.1] * 50) == 0


@given(st.lists(st.floats(0.01, 10.0), max_size=150), st.integers(-8, 8))
@settings(deadline=None)
def test_the_unit_of_time_does_not_matter(samples: list[float], power: int) -> None:
    # Powers of two scale exactly, but their logarithms round: ties may fall either way then.
    jittered = [value * (1 + 1e-4 * (at % 7)) for at, value in enumerate(samples)]
    found = steady_from(jittered)
    assert 0 <= found <= len(samples)
    assert steady_from([value * 2.0**power for value in jittered]) == found


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_times_that_are_none_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        steady_from([0.1, bad])


@pytest.mark.parametrize(("count", "most_loops"), [(500, 1.0), (2000, 2.0)])
def test_it_is_quick_enough_to_be_asked_often(count: int, most_loops: float) -> None:
    samples = wandering(random.Random(9), count)

    assert loops_of(lambda: steady_from(samples)) < most_loops
