from __future__ import annotations

import json

from tests.loads import result, search, stage, stretch

from tfdyno.core.base.codec import to_json
from tfdyno.view.bench.load_document import load_document
from tfdyno.view.bench.load_page import load_page
from tfdyno.view.bench.load_text import load_text
from tfdyno.view.project.document_readers import load_of


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
