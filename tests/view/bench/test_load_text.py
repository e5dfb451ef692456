from __future__ import annotations

import json
from dataclasses import replace

from tests.loads import result, search, stage, stretch

from tfdyno.core.base.codec import to_json
from tfdyno.view.bench.load_page import load_page
from tfdyno.view.bench.load_text import load_document, load_text
from tfdyno.view.project.document_readers import load_of
from tfdyno.words.bench.load import main_stage


def test_the_answer_is_the_stretch_at_the_knee() -> None:
    found = search()
    assert main_stage(found).run.plan.rate_per_s == 200.0
    text = load_text(found)
    assert text.startswith("cnn at http://127.0.0.1:8501/v1/models/cnn takes 200 requests/s with")
    marks = [line[0] for line in text.split("\n") if "requests/s  " in line]
    assert marks == [" ", "x", "*"]


def test_an_answer_without_a_good_request_is_told() -> None:
    run = stretch([0.01] * 4, codes=(429,) * 4)
    assert "nothing was measured" in load_text(result(stage(run), allows_refusals=True))


def test_lines_fit_the_screen_and_the_histogram_is_drawn() -> None:
    text = load_text(search(), width=80, written=("load.json",))
    assert max(map(len, text.split("\n"))) <= 80
    assert "  4  ██" in text
    assert text.endswith("Wrote load.json.")
    assert "$" in text


def test_a_long_wait_is_no_power_of_ten() -> None:
    text = load_text(result(stage(stretch([15.22] * 40))))
    assert "worst 15,220 ms" in text


def test_of_two_stretches_at_the_knee_the_longer_one_is_marked() -> None:
    found = search()
    last = found.stages[-1]
    plan = replace(last.run.plan, decides=True)
    longer = replace(last, run=replace(last.run, plan=plan))
    text = load_text(replace(found, stages=(*found.stages, longer)))
    rows = [line[:26].rstrip() for line in text.split("\n") if "200 requests/s  " in line
            or "longer" in line]  # fmt: skip
    assert rows == ["  200 requests/s", "* 200 requests/s, longer"]


def test_figures_of_the_answer_stand_at_the_top() -> None:
    document = load_document(search())
    assert list(document)[:3] == ["format", "verdict", "faults"]
    assert document["accepted_per_s"] == document["stages"][3]["figures"]["accepted_per_s"]
    assert len(document["stages"][0]["run"]["latency_s"]) == 400


def test_a_failed_test_has_none_of_them() -> None:
    document = load_document(result(stage(stretch([0.01])), faults=("no",)))
    assert document["verdict"] == "failed"
    assert document["p99_s"] is document["accepted_per_s"] is document["knee_rate_per_s"] is None
    assert document["stages"][0]["figures"]["accepted"] == 1


def test_an_end_that_nothing_bounds_is_null_and_comes_back() -> None:
    few = result(stage(stretch([0.01, 0.02, 0.03] * 30)))
    document = load_document(few)
    assert document["p95_s"]["high"] == 0.03
    assert document["p99_s"] == document["stages"][0]["figures"]["p99_s"]
    assert document["p99_s"] == {"low": 0.03, "best": 0.03, "high": None}
    assert load_of(json.loads(to_json(document))).stages == few.stages
    assert "at least 30 ms (95 %), worst" in load_text(few)
    assert "The p99 is at least 30\xa0ms (95 %)" in load_page(few)
