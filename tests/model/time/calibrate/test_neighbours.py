from __future__ import annotations

import math

import numpy as np
import pytest

from tfdyno.model.time.calibrate.neighbours import LEVEL, LOCAL, Residuals, carried


def residuals(sizes: list[float], ratios: list[float], noise: float = 0.03) -> Residuals:
    return Residuals(
        sizes=np.array(sizes)[:, None],
        log_ratio=np.array(ratios),
        noise=np.full(len(sizes), noise),
    )


def test_a_measured_size_keeps_its_residual() -> None:
    found, deviation = carried(residuals([10.0, 20.0], [0.2, 0.8]), np.array([[10.0], [20.0]]))
    assert found == pytest.approx([0.2, 0.8], abs=0.02)
    assert (deviation < 0.05).all()


def test_between_two_sizes_lies_what_is_between() -> None:
    found, _ = carried(residuals([10.0, 12.0], [0.0, 0.4]), np.array([[11.0]]))
    assert found[0] == pytest.approx(0.2, abs=0.02)


def test_far_from_all_the_group_has_its_level_and_the_range_grows() -> None:
    far, deviation = carried(residuals([10.0, 20.0], [0.4, 0.6]), np.array([[60.0]]))
    assert far[0] == pytest.approx(0.5, abs=0.02)
    # Two kernels of the group: sqrt(LOCAL^2 + LOCAL^2 / 2), but for a little noise.
    assert deviation[0] == pytest.approx(LOCAL * math.sqrt(1.5), rel=0.02)


def test_one_kernel_is_the_posterior_of_two_normal_values() -> None:
    # mean = r v / (v + n), v = LEVEL^2 + LOCAL^2: the formula of one observation by hand.
    variance = LEVEL**2 + LOCAL**2
    found, deviation = carried(residuals([10.0], [1.0], noise=0.5), np.array([[10.0]]))
    assert found[0] == pytest.approx(variance / (variance + 0.25))
    assert deviation[0] == pytest.approx(math.sqrt(variance - variance**2 / (variance + 0.25)))


def test_without_a_kernel_nothing_is_moved_and_nothing_is_known() -> None:
    none = Residuals(sizes=np.zeros((0, 1)), log_ratio=np.zeros(0), noise=np.zeros(0))
    found, deviation = carried(none, np.array([[3.0]]))
    assert (found[0], deviation[0]) == (0.0, pytest.approx(math.hypot(LEVEL, LOCAL)))
