"""Runs are named in order, and their common axis holds what matters."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.measurements import measurement, run
from tests.view import benches

from tfdyno.view.bench.runs import round_ticks, shown_runs, step_axis, steps_upto


def test_runs_of_two_sides_are_called_by_side_and_number() -> None:
    told, _ = benches.pair(runs=3)
    assert [one.name for one in shown_runs(told)] == ["A 1", "A 2", "A 3", "B 1", "B 2", "B 3"]
    assert {one.colour for one in shown_runs(told)[:3]} == {"c1"}
    assert [one.name for one in shown_runs(told[:1])] == ["run 1", "run 2", "run 3"]


def test_the_steady_part_begins_after_import_build_first_step_and_warm_up() -> None:
    one = run([0.4, 0.3, *[0.1] * 20], steps_per_sample=(2,) * 22, steady_from=2,
              excluded=(5,), import_s=3.0, build_s=1.0, first_step_s=2.0)  # fmt: skip
    (shown,) = shown_runs([benches.told(replace(measurement([[0.1]]), runs=(one,)))])
    assert shown.steady
    assert shown.steady_began_s == pytest.approx(6.0 + 2 * 0.7)
    assert shown.ended_s == pytest.approx(6.0 + 2 * 0.7 + 2 * 20 * 0.1)
    assert shown.left_out_s == (0.4, 0.3, 0.1)
    assert steps_upto(one)[:3] == (2, 4, 6)


def test_without_a_steady_state_the_second_half_is_shown() -> None:
    restless = run([0.1] * 20, steady_from=20)
    (shown,) = shown_runs([benches.told(replace(measurement([[0.1]]), runs=(restless,)))])
    assert not shown.steady
    assert shown.start == 10


def test_a_run_without_a_steady_state_counts_only_where_none_has_one() -> None:
    restless, calm = run([0.1] * 20, steady_from=20), run([0.1] * 20, order=1)
    for runs, expected in (((restless, calm), [False, True]), ((restless,) * 2, [True, True])):
        told = [benches.told(replace(measurement([[0.1]]), runs=runs))]
        assert [one.counts for one in shown_runs(told)] == expected
        assert [one.colour == "c1" for one in shown_runs(told)] == expected


def test_the_axis_leaves_a_spike_out_and_keeps_medians_and_intervals() -> None:
    told = [benches.told(benches.on_cpu())]
    axis = step_axis(told)
    assert axis.unit == "ms"
    assert axis.high_s < 0.1 < max(s for r in told[0].measurement.runs for s in r.steady_s)
    for value_s in (*told[0].medians_s, *told[0].summary.interval_s):
        assert axis.low_s < value_s < axis.high_s
        assert 0.0 < axis.share(value_s) < 1.0
    assert axis.share(10.0) == 1.0


def test_a_calm_run_looks_calm() -> None:
    axis = step_axis([benches.told(measurement([[0.05] * 20] * 3))])
    assert (axis.high_s - axis.low_s) / 0.05 > 0.04
    assert axis.words(0.05) == "50.00 ms"


@given(low=st.floats(0.0, 1e4), span=st.floats(1e-2, 1e6), most=st.integers(2, 9))
def test_ticks_are_few_round_and_inside(low: float, span: float, most: int) -> None:
    ticks = round_ticks(low, low + span, most)
    slack = 1e-6 * (low + span)
    assert len(ticks) <= most + 1
    assert all(low - slack <= tick <= low + span + slack for tick in ticks)
    for a, b in pairwise(ticks):
        assert f"{b - a:.3e}"[:4] in {"1.00", "2.00", "5.00"}
