"""One published measurement as the user's own: what it does to the estimates of other cards."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import pytest
from tests.judged import everything

from tfdyno_truth.recalibrate import gains

if TYPE_CHECKING:
    from tfdyno_truth.recalibrate import Gain


@lru_cache(maxsize=1)
def found() -> dict[str, Gain]:
    return {gain.label: gain for gain in gains(everything())}


@pytest.mark.parametrize(("label", "cells"), [("TensorFlow, xla", 180), ("TensorFlow, graph", 120)])
def test_one_measured_card_makes_the_errors_on_others_smaller(label: str, cells: int) -> None:
    gain = found()[label]
    assert gain.cells > cells
    assert gain.mean_after < 0.95 * gain.mean_before
    assert gain.median_after < 0.95 * gain.median_before
    assert gain.half_width_after < gain.half_width_before


@pytest.mark.parametrize("label", ["TensorFlow, xla", "TensorFlow, graph"])
def test_the_narrower_interval_holds_as_often(label: str) -> None:
    gain = found()[label]
    assert gain.given_after < 0.9 * gain.given_before
    assert gain.held_after > min(gain.held_before - 0.02, 0.9)
