from __future__ import annotations

import math
import random
import statistics as standard

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.turns import loops_of

from tfdyno.model.measure.statistics import (
    bootstrap_median,
    detrended,
    median,
    noise,
    paired,
    quantile,
    student_t_quantile,
    trimmed_mean,
    variance,
    weighted_median,
    welch,
)

NUMBERS = st.lists(st.floats(0.001, 1000.0), min_size=1, max_size=40)


def test_quantiles_are_interpolated() -> None:
    # places 0, 1, 2, 3; 0.25 * 3 = 0.75 of the way from 1 to 2
    assert quantile([4.0, 1.0, 3.0, 2.0], 0.25) == pytest.approx(1.75)


@given(NUMBERS)
def test_the_median_is_that_of_the_standard_library(values: list[float]) -> None:
    assert median(values) == pytest.approx(standard.median(values))


@given(NUMBERS)
def test_equal_weights_change_no_median(values: list[float]) -> None:
    assert weighted_median(values, [3.0] * len(values)) == pytest.approx(median(values))


@given(st.lists(st.tuples(st.floats(0.1, 10.0), st.integers(1, 5)), min_size=1, max_size=20))
def test_a_weight_counts_as_so_many_values(pairs: list[tuple[float, int]]) -> None:
    spelled = [value for value, count in pairs for _ in range(count)]
    found = weighted_median([value for value, _ in pairs], [count for _, count in pairs])
    assert found == pytest.approx(median(spelled))


def test_a_tenth_is_cut_on_each_side() -> None:
    # of ten values the 1 and the 1000 go: (2 + ... + 9) / 8
    assert trimmed_mean([1000.0, 1, 2, 3, 4, 5, 6, 7, 8, 9]) == pytest.approx(44 / 8)


def test_a_trimmed_mean_weighs_what_it_keeps() -> None:
    assert trimmed_mean([1.0, 2.0], [3.0, 1.0]) == pytest.approx(1.25)


def test_noise_sees_neither_a_change_of_level_nor_a_trend_nor_an_outlier() -> None:
    draw = random.Random(3)
    steps = [draw.gauss(0.0, 1.0) + 0.01 * at + (50 if at > 200 else 0) for at in range(400)]
    steps[100] += 1000.0
    assert noise(steps) == pytest.approx(1.0, rel=0.12)


def test_two_values_have_no_noise() -> None:
    assert noise([1.0, 2.0]) == 0.0


@pytest.mark.parametrize(
    ("share", "degrees", "expected"),
    # NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, and its last line (normal)
    [
        (0.975, 1, 12.706), (0.95, 2, 2.920), (0.995, 4, 4.604), (0.975, 4, 2.776),
        (0.995, 8, 3.355), (0.99, 10, 2.764), (0.9, 20, 1.325), (0.975, 30, 2.042),
        (0.999, 5, 5.893), (0.975, 100, 1.984), (0.995, 1e7, 2.576),
    ],
)  # fmt: skip
def test_quantiles_of_student_are_those_of_the_table(
    share: float, degrees: float, expected: float
) -> None:
    assert student_t_quantile(share, degrees) == pytest.approx(expected, abs=6e-4)


@given(st.floats(0.001, 0.999), st.floats(1.0, 200.0))
def test_student_is_symmetric(share: float, degrees: float) -> None:
    mirrored = -student_t_quantile(1.0 - share, degrees)
    assert student_t_quantile(share, degrees) == pytest.approx(mirrored, abs=1e-9)


def test_paired_interval_by_hand() -> None:
    # log ratios 1, 2, 3: mean 2, standard deviation 1, error 1/sqrt 3; t(0.975; 2) = 4.303
    found = paired([1.0, 1.0, 1.0], [math.e, math.e**2, math.e**3])
    assert found.log_ratio == pytest.approx(2.0)
    assert found.half_width(0.95) == pytest.approx(4.3027 / math.sqrt(3), abs=1e-3)


def test_welch_interval_by_hand() -> None:
    # variances 1 and 4 of 3 values: error² = 1/3 + 4/3; degrees = (5/3)² / ((1/9 + 16/9) / 2)
    a, b = [math.exp(x) for x in (0, 1, 2)], [math.exp(x) for x in (1, 3, 5)]
    found = welch(a, b)
    assert found.log_ratio == pytest.approx(2.0)
    assert found.standard_error == pytest.approx(math.sqrt(5 / 3))
    assert found.degrees == pytest.approx((25 / 9) / (17 / 18))


def test_a_trend_of_both_sides_is_no_difference() -> None:
    # level 1, slope 0.1 per place, B 0.5 above: exact, so without an error
    places = ([0, 3, 4], [1, 2, 5])
    a, b = ([math.exp(1 + 0.1 * at + more) for at in side]
            for side, more in zip(places, (0.0, 0.5), strict=True))  # fmt: skip
    found = detrended(a, b, places=places)
    assert found.log_ratio == pytest.approx(0.5)
    assert found.standard_error == pytest.approx(0.0, abs=1e-9)
    assert found.degrees == 3.0


def test_sides_in_two_blocks_of_two_places_cannot_be_told_from_a_trend() -> None:
    with pytest.raises(ValueError, match="order"):
        detrended([1.0, 1.0], [2.0, 2.0], places=([0, 0], [1, 1]))


@pytest.mark.parametrize("way", [paired, welch])
def test_nothing_follows_from_one_value(way: object) -> None:
    with pytest.raises(ValueError, match="two"):
        way([1.0], [2.0])  # type: ignore[operator]


def test_variance_of_a_sample() -> None:
    assert variance([1.0, 2.0, 3.0]) == 1.0
    assert variance([1.0]) == 0.0


@pytest.mark.parametrize("count", [31, 30])  # odd and even
def test_the_bootstrap_is_that_of_drawing_every_sample(count: int) -> None:
    draw = random.Random(5)
    runs = [[draw.gauss(10 + 0.1 * at, 1.0) for _ in range(count)] for at in range(6)]

    def drawn() -> float:
        chosen = draw.choices(runs, k=len(runs))
        return median([median(draw.choices(run, k=len(run))) for run in chosen])

    middles = [drawn() for _ in range(3000)]
    low, high = bootstrap_median(runs, confidence_ratio=0.8)
    assert low == pytest.approx(quantile(middles, 0.1), abs=0.06)
    assert high == pytest.approx(quantile(middles, 0.9), abs=0.06)


@given(st.lists(NUMBERS, min_size=1, max_size=4))
def test_a_bootstrap_interval_lies_among_the_samples(runs: list[list[float]]) -> None:
    low, high = bootstrap_median(runs)
    everything = [value for run in runs for value in run]
    assert min(everything) <= low <= high <= max(everything)
    assert bootstrap_median(runs) == (low, high)


def test_a_bootstrap_draws_by_weight() -> None:
    run = [1.0] * 50 + [2.0] * 50
    assert bootstrap_median([run], [[1] * 50 + [9] * 50]) == (2.0, 2.0)


def test_the_bootstrap_of_ten_long_runs_is_quick() -> None:
    draw = random.Random(1)
    runs = [[draw.gauss(1.0, 0.1) for _ in range(200)] for _ in range(10)]

    assert loops_of(lambda: bootstrap_median(runs)) < 5.0


@pytest.mark.parametrize("call", [median, trimmed_mean, bootstrap_median])
def test_without_values_there_is_an_error(call: object) -> None:
    with pytest.raises(ValueError, match="need"):
        call([])  # type: ignore[operator]
