"""Widths of the intervals around efficiencies, and what they hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.truth.test_scaling import few

from tfdyno.catalog.time_model import time_model
from tfdyno.model.time.scaling import efficiency_ends
from tfdyno_truth.scaling_width import (
    MOST_WIDTH,
    holding,
    judge,
    kept_share,
    needed_width,
    shipped_widths,
)


@pytest.mark.parametrize(("predicted", "measured"), [(0.9, 0.6), (0.3, 0.5), (0.95, 1.05)])
def test_the_width_that_is_needed_just_reaches_the_run(predicted: float, measured: float) -> None:
    width = needed_width(predicted, measured)
    ends = efficiency_ends(predicted, width)
    assert min(abs(end - measured) for end in ends) < 1e-4
    assert ends[0] <= measured <= ends[1]


def test_what_no_width_reaches_needs_the_most() -> None:
    assert needed_width(0.9, 1e-9) == pytest.approx(MOST_WIDTH)
    assert needed_width(0.9, 0.9) < 1e-6


def test_a_width_has_not_seen_the_runs_that_it_is_for() -> None:
    labels = np.array([pair.row.architecture for pair in few().pairs])
    predicted = few().predict(time_model())
    bert = labels == "bert"
    wrong = replace(few(), measured=np.where(bert, 0.01, few().measured))
    before, after = judge(few(), labels, predicted), judge(wrong, labels, predicted)
    assert (after.widths[bert] == before.widths[bert]).all()
    assert (after.widths[~bert] > before.widths[~bert]).all()


def test_the_widths_that_ship_hold_nine_of_ten_of_what_they_are_from() -> None:
    labels = np.array([pair.row.architecture for pair in few().pairs])
    judged = judge(few(), labels, few().predict(time_model()))
    widths = shipped_widths(few(), [judged])
    assert set(widths) == {"allreduce_width"}  # one machine each
    chosen = few().learned
    same = np.full(len(labels), widths["allreduce_width"] + 1e-3)
    assert 0.9 <= holding(few(), judged.predicted, same, chosen).coverage <= 0.96


def test_a_run_outside_costs_twenty_times_its_distance() -> None:
    one = few().take(np.array([0]))
    predicted, width = np.array([0.5]), np.array([0.1])
    low, high = efficiency_ends(0.5, 0.1)
    found = holding(
        replace(one, measured=np.array([high + 0.1])), predicted, width, np.array([True])
    )
    assert (found.coverage, found.runs) == (0.0, 1)
    assert found.score == pytest.approx(high - low + 20 * 0.1)


def test_what_is_kept_is_not_above_the_prediction() -> None:
    labels = np.array([pair.row.architecture for pair in few().pairs])
    judged = judge(few(), labels, np.full(len(labels), 0.1))
    assert kept_share(few(), judged, np.ones(len(labels), dtype=bool)) == 1.0
