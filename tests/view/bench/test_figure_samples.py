"""Each run has its panel, and the steady part is marked in it."""

from __future__ import annotations

from dataclasses import replace

from tests.measurements import measurement, run
from tests.view import benches

from tfdyno.view.bench.figure_samples import samples_figure


def test_each_run_has_a_panel_with_its_steps_and_median() -> None:
    found = samples_figure([benches.told(benches.on_cpu())])
    assert found.wide.count(">272 steps<") == found.narrow.count(">272 steps<") == 5
    assert found.table.rows[0][1:3] == ("32", "240")
    assert "cut at the top; the longest took 13" in found.wide
    assert "found in 5 of them" in found.label


def test_a_run_without_a_steady_state_says_so() -> None:
    restless = run([0.1, 0.2] * 10, steady_from=20)
    found = samples_figure([benches.told(replace(measurement([[0.1]]), runs=(restless,)))])
    assert ">no steady state<" in found.wide
    assert "found in 0 of them" in found.label


def test_long_runs_keep_their_extremes_and_stay_small() -> None:
    samples_s = [0.05] * 4000
    samples_s[1234] = 0.0502
    samples_s[2345] = 0.0498
    one = benches.told(measurement([samples_s]))
    assert len(samples_figure([one]).wide) < 20_000
    assert samples_figure([one]).table.rows[0][-1] == "50.2"
