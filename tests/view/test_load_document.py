from __future__ import annotations

from tests.loads import result, search, stage, stretch

from tfdyno.view.load_document import load_document


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
