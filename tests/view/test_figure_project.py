"""view.figure_project: offers, trials and runs as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests import past_runs
from tests.past_runs import FIRST, SECOND, two_runs

from tfdyno.jobs.report import report
from tfdyno.view.figure_project import offers_figure, runs_figure, trials_figure

if TYPE_CHECKING:
    from pathlib import Path


def test_each_gpu_has_its_cheapest_offer_in_order_of_cost() -> None:
    raw = past_runs.document("advise")
    found = offers_figure(raw)
    assert found is not None
    assert [row[0] for row in found.table.rows] == ["Tesla T4", "L4", "A100 SXM4 80 GB"]
    costs = [float(row[2]) for row in found.table.rows]
    assert costs == sorted(costs)
    assert costs[0] == pytest.approx(min(one["cost_usd"] for one in raw["ranking"]), rel=0.01)


def test_a_service_costs_so_much_a_month_and_dear_offers_keep_their_digits() -> None:
    raw = past_runs.document("size")
    found = offers_figure(raw)
    assert found is not None
    assert found.caption == "Cost of a month on the cheapest offer of each GPU"
    assert found.table.rows[0] == ("L4", "runpod 1x_L4_SECURE", "321.20", "–", "12.8 ms")
    assert [row[0] for row in found.table.rows] == ["L4", "Tesla T4", "4 x Tesla T4", "4 x L4"]
    assert "4 x Tesla T4 3,180 US$" in found.label


def test_without_a_price_there_is_no_figure() -> None:
    raw = past_runs.document("advise")
    for one in raw["ranking"]:
        one |= {"cost_usd": None, "cost_usd_range": None}
    assert offers_figure(raw) is None
    assert offers_figure({}) is None


def test_trials_stand_fastest_first_and_those_without_a_speed_in_the_table() -> None:
    trials = [
        {"changes": {}, "status": "measured", "samples_per_s": 100.0},
        {"changes": {"execution": "xla"}, "status": "measured", "samples_per_s": 150.0},
        {"changes": {"batch_size": 9999}, "status": "failed", "reason": "out of memory"},
    ]
    found = trials_figure({"trials": trials, "best": {"changes": {"execution": "xla"}}})
    assert found is not None
    assert "execution=xla 150; as it is 100" in found.label
    assert found.table.rows[2] == ("batch_size=9999", "failed", "–", "out of memory")
    assert trials_figure({"trials": trials[2:]}) is None
    assert trials_figure({}) is None


def test_a_run_that_reused_its_bench_is_no_second_measurement(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    found = runs_figure(report(history).history, SECOND)
    assert found is not None
    assert [row[0] for row in found.table.rows] == [FIRST, SECOND]
    assert runs_figure(report(history, run=FIRST).history, FIRST) is None
    again = report(history, run=FIRST).history
    assert runs_figure((*again, *again), FIRST) is None
