from __future__ import annotations

from dataclasses import replace

import pytest
from tests.measurements import measurement, run

from tfdyno.core.measure.measurement import Telemetry
from tfdyno.model.measure.steady_part import (
    beside_s,
    is_steady,
    judged_runs,
    run_medians_s,
    steady_part,
    steady_points,
)


def test_the_steady_part_leaves_out_warm_up_and_excluded_samples() -> None:
    one = run([9.0, 1.0, 7.0, 2.0], steady_from=1, excluded=(2,), steps_per_sample=(1, 4, 4, 4))
    assert steady_part(one).samples_s == (1.0, 2.0)
    assert steady_part(one).steps == (4, 4)


def test_a_run_without_a_steady_state_is_judged_by_its_second_half() -> None:
    one = run([9.0, 8.0, 1.0, 2.0], steady_from=4)
    assert not is_steady(one)
    assert steady_part(one).samples_s == (1.0, 2.0)


def test_a_sample_counts_with_its_steps() -> None:
    # five steps of 1 s against two of 3 s: the middle step took 1 s
    assert run_medians_s([run([1.0, 3.0, 3.0], steps_per_sample=(5, 1, 1))]) == (1.0,)


def test_runs_without_a_steady_state_count_only_where_none_has_one() -> None:
    calm, restless, empty = run([1.0, 1.0]), run([2.0, 2.0], steady_from=2), run([])
    whole = measurement([])
    assert judged_runs(replace(whole, runs=(restless, calm, empty))) == (calm,)
    assert judged_runs(replace(whole, runs=(restless, empty))) == (restless,)


def test_telemetry_of_the_steady_part_begins_after_compile_and_warm_up() -> None:
    # import 2 s, build 0.5 s, first step 1 s, one warm-up sample of 2 steps of 0.5 s: from 4.5 s;
    # four steps of 0.25 s: to 5.5 s
    one = run(
        [0.5, 0.25, 0.25], steps_per_sample=(2, 2, 2), steady_from=1,
        telemetry=Telemetry(at_s=(4.0, 4.4, 4.6, 5.0, 5.5, 6.0)),
    )  # fmt: skip
    assert steady_points(one) == range(2, 5)
    assert steady_points(run([0.1])) == range(0)


def test_a_run_without_samples_has_no_median() -> None:
    with pytest.raises(ValueError, match="values"):
        run_medians_s([run([])])


def test_the_machine_s_speed_is_that_of_the_steady_part() -> None:
    one = run([9.0, 0.1, 0.1, 0.1], steady_from=1, beside_s=(0.009, 0.001, 0.003, 0.002),
              beside_places=(1, 2, 3, 4))  # fmt: skip
    assert beside_s(one) == 0.002
    assert beside_s(run([0.1])) == 0.0
