"""Growth told from jumps, plateaus and noise."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.model.memory.growth import _rank, rises, slope, slope_of_fits, steps_until

STEPS = range(60)


def test_a_straight_line_has_its_own_slope() -> None:
    found = slope(STEPS, [100.0 + 3.0 * step for step in STEPS])
    assert found is not None
    assert (found.low, found.best, found.high) == (3.0, 3.0, 3.0)


def test_one_jump_between_two_plateaus_is_no_growth() -> None:
    found = slope(STEPS, [0.0 if step < 45 else 1e9 for step in STEPS])
    assert found is not None
    assert found.low == 0.0


def test_growth_that_ends_in_the_first_half_is_none() -> None:
    found = slope(STEPS, [min(step, 25) * 1e6 for step in STEPS])
    assert found is not None
    assert (found.low, found.best) == (0.0, 0.0)


def test_peaks_within_a_block_drop_out() -> None:
    values = [2.0 * step + (1e6 if step % 3 == 0 else 0.0) for step in STEPS]
    found = slope(STEPS, values)
    assert found is not None
    assert found.low > 1.0
    assert found.best == pytest.approx(2.0, rel=0.3)


def test_noise_without_a_trend_has_zero_inside() -> None:
    draw = random.Random(3)
    wrong = 0
    for _ in range(200):
        found = slope(STEPS, [draw.gauss(0.0, 1.0) for _ in STEPS])
        assert found is not None
        wrong += found.low > 0 or found.high < 0
    assert wrong <= 10  # 5 % of 200


def test_growth_at_every_16th_step_is_sure_and_has_its_mean() -> None:
    # By hand: 16 B at each 16th step are 1 B a step; of 320 steps the last 160 hold 10 jumps.
    found = slope(range(320), [16.0 * (step // 16) for step in range(320)])
    assert found is not None
    assert found.low > 0.0
    assert found.best == pytest.approx(1.0, rel=0.2)
    assert found.high >= found.best


def test_one_jump_may_be_a_growth_as_far_as_the_upper_end_goes() -> None:
    found = slope(
        range(200), [float(step) + (300.0 if step >= 190 else 0.0) for step in range(200)]
    )
    assert found is not None
    assert found.low == pytest.approx(1.0)
    # By hand: 16 blocks, the first begins at step 100, the last at 194: (94 + 300) / 94.
    assert found.high == pytest.approx(394.0 / 94.0)


def test_a_level_that_is_left_again_is_no_rise() -> None:
    assert rises([1.0, 5.0, 1.0, 2.0, 2.0, 4.0]) == 2  # 1 -> 2 -> 4
    assert rises([3.0, 2.0, 1.0]) == 0
    assert rises([]) == 0


def test_memory_is_full_when_what_is_free_is_used_up() -> None:
    assert steps_until(1000.0, 4.0) == 250.0
    assert steps_until(1000.0, 0.0) == math.inf
    assert steps_until(1000.0, -3.0) == math.inf
    with pytest.raises(ValueError, match="free_bytes"):
        steps_until(-1.0, 4.0)


@given(st.floats(0, 1e12), st.floats(1e-3, 1e9), st.floats(1e-3, 1e9))
def test_faster_growth_never_leaves_more_steps(free: float, slow: float, more: float) -> None:
    assert steps_until(free, slow + more) <= steps_until(free, slow)


def test_half_of_27_points_is_too_few_and_of_28_is_enough() -> None:
    assert slope(range(26), [0.0] * 26) is None
    assert slope(range(28), [0.0] * 28) is not None


def test_lengths_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        slope([1.0], [])


@pytest.mark.parametrize(("count", "expected"), [(6, 0), (8, 0), (9, 1), (15, 3)])
def test_as_many_are_left_out_as_the_sign_test_allows(count: int, expected: int) -> None:
    # By hand: 6: 2/64 = 3.1 %; 9: 2 (1 + 9)/512 = 3.9 %; 15: 2 (1 + 15 + 105 + 455)/32768 = 3.5 %.
    assert _rank(count, 0.95) == expected


@given(st.floats(-1e6, 1e6), st.floats(-1e9, 1e9), st.integers(28, 200))
def test_any_line_lies_within_its_interval(rise: float, begin: float, count: int) -> None:
    found = slope(range(count), [begin + rise * step for step in range(count)])
    assert found is not None
    near = 1e-6 * max(abs(rise), abs(begin), 1.0)
    assert found.low - near <= rise <= found.high + near


def test_the_growth_of_fits_leaves_the_first_two_out() -> None:
    # 100 and 50 MB before it is even; then 8, 9, 8, 9, 8, 9: all pairs, between the least and most
    used = [0, 100, 150, 158, 167, 175, 184, 192, 201]
    found = slope_of_fits(used)
    assert found is not None
    assert (found.low, found.high) == (8.0, 9.0)
    assert found.best == pytest.approx(8.5)


def test_eight_fits_are_too_few() -> None:
    assert slope_of_fits([8.0 * number for number in range(8)]) is None
    assert slope_of_fits([8.0 * number for number in range(9)]) is not None


def test_one_jump_between_fits_is_no_growth() -> None:
    found = slope_of_fits([0.0] * 6 + [50.0] * 6)
    assert found is not None
    assert found.low == 0.0
