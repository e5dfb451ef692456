"""view.figure_project: offers, trials and runs as bars."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests import past_runs
from tests.past_runs import FIRST, SECOND, THIRD, project_run, step_run, two_runs

from tfdyno.core.project.project import FOLDER
from tfdyno.jobs.project.report import report
from tfdyno.store.project_history import ProjectHistory
from tfdyno.view.project.figure_project import offers_figure, runs_figures, trials_figure

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
    (found,) = runs_figures(report(history).history, SECOND)
    assert [row[0] for row in found.table.rows] == [SECOND, FIRST]
    assert runs_figures(report(history, run=FIRST).history, FIRST) == ()
    history.write(project_run(THIRD, step_run("speed", status="reused", version=2)))
    (found,) = runs_figures(report(history).history, THIRD)
    assert [row[0] for row in found.table.rows] == [SECOND, FIRST]


def test_each_bench_has_a_figure_of_its_own_on_each_machine(tmp_path: Path) -> None:
    history = ProjectHistory(folder=tmp_path / FOLDER)
    for version, name in enumerate((FIRST, SECOND, THIRD), start=1):
        steps = [step_run(one, version=version) for one in ("small", "big")]
        steps = [replace(one, command="bench") for one in steps]
        raw = past_runs.document("bench")
        if name == THIRD:
            raw["environment"]["host"] = "cloud"
        for step, rate in zip(steps, (3340.0, 167.0), strict=True):
            past_runs.put(history, step, raw | {"throughput_per_s": rate})
        history.write(project_run(name, *steps))
    found = runs_figures(report(history).history, THIRD)
    assert [one.caption.partition(",")[0] for one in found] == [
        "Throughput of small",
        "Throughput of big",
    ]
    assert all("anew on desk, Intel" in one.caption for one in found)
    for one, said in zip(found, ("3,340 samples/s", "167 samples/s"), strict=True):
        assert [(row[0], row[2]) for row in one.table.rows] == [(SECOND, said), (FIRST, said)]


def test_a_bench_that_failed_is_no_bar(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    failed = step_run("speed", status="failed", version=3)
    raw = json.dumps(past_runs.document("bench")).encode()
    past_runs.begin(history, failed, {"answer.json": raw})
    history.write(project_run(THIRD, failed, status="failed"))
    assert report(history).told.steps[0].figures
    (found,) = runs_figures(report(history).history, THIRD)
    assert [row[0] for row in found.table.rows] == [SECOND, FIRST]
