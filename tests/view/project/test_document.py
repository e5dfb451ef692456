"""view.project_document: the joined answer as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests import past_runs
from tests.past_runs import FIRST, SECOND, failed_run, two_runs

from tfdyno.core.base.codec import to_json
from tfdyno.jobs.project.report import report, tell
from tfdyno.jobs.project.runs import run_named, runs_of
from tfdyno.jobs.project.runs_removal import remove
from tfdyno.view.project.document import (
    removal_document,
    report_document,
    run_document,
    runs_document,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_the_joined_document_holds_every_step_whole(tmp_path: Path) -> None:
    found = json.loads(to_json(report_document(report(two_runs(tmp_path)))))
    assert (found["id"], found["status"], found["run_count"]) == (SECOND, "finished", 2)
    assert (found["done"], found["reused"], found["failed"]) == (1, 10, 0)
    assert [one["step"] for one in found["answer"]] == list(past_runs.STEPS)
    documents = {one["step"]: one["document"] for one in found["steps"]}
    assert documents["load"] == past_runs.document("load")
    assert documents["speed"] == past_runs.document("bench-fast")
    assert [one["id"] for one in found["history"]] == [SECOND, FIRST]
    assert "document" not in found["history"][0]["steps"][0]
    assert found["compared"][0]["changes"][0]["text"] == "option arguments is new (--fast)"
    assert found["compared"][0]["gained"][0]["interval"][0] > 0


def test_a_page_leaves_out_the_single_requests(tmp_path: Path) -> None:
    found = report_document(report(two_runs(tmp_path)), every=False)
    load = next(one for one in found["steps"] if one["step"] == "load")["document"]
    assert all("latency_s" not in stage["run"] for stage in load["stages"])
    assert load["knee_rate_per_s"] == past_runs.document("load")["knee_rate_per_s"]


def test_a_step_says_why_and_whether_it_was_reached(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    failed = failed_run(history)
    found = run_document(tell(history, failed, history.runs()))
    steps = {one["step"]: one for one in found["steps"]}
    assert steps["speed"]["status"] == "not_reached"
    assert (found["status"], found["step_count"]) == ("failed", 4)
    whole = run_document(tell(history, run_named(history.runs(), FIRST), history.runs()))
    assert {whole["status"], *(one["status"] for one in whole["steps"])} == {"finished"}
    assert steps["train"]["trouble"] == "Exit code 3: out of memory."
    assert steps["choose"]["why"] == "nothing that it rests on has changed"


def test_runs_and_removals_are_told_by_id(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    listed = runs_document(str(history.folder), runs_of(history))
    assert [one["id"] for one in listed["runs"]] == [SECOND, FIRST]
    assert listed["runs"][1]["duration_s"] == 137.5  # eleven steps of 12.5 s
    gone = removal_document(remove(history, lambda _runs: (FIRST,)), removed=True)
    assert (gone["removed"], len(gone["outputs"]), len(gone["kept_outputs"])) == (True, 1, 10)
