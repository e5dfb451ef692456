"""view/diagnose_document: the keys that scripts rely on."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from tests.view.diagnoses import AGREEMENT, LEAK, PROOF, SLOWER, SPLIT_S, fixed, only, told

from tfdyno.core.base.codec import to_json
from tfdyno.view.diagnose.document import diagnose_document


def test_the_documented_keys_are_there() -> None:
    document = json.loads(to_json(diagnose_document(told())))
    assert {"primary", "findings", "split_s", "step_s"} <= set(document)
    primary = document["primary"]
    assert (primary["class"], primary["cause"]) == ("input", "input.sequential_map")
    assert primary == document["findings"][0]
    assert primary["evidence"][0] == "train.py:41: map(parse) takes 240 ms of a batch's 255 ms"
    assert primary["fix"] == ["Let map work on several elements at once: ds.map(parse, "
                              "num_parallel_calls=tf.data.AUTOTUNE)"]  # fmt: skip
    assert primary["expected_gain"] == {"low": 2.3, "best": 2.45, "high": 2.6}
    assert (primary["proven_gain"], primary["kept"]) == (None, None)
    assert document["split_s"] == SPLIT_S
    assert sum(document["split_s"].values()) == pytest.approx(document["step_s"])


def test_the_speed_is_that_of_all_replicas() -> None:
    one = told()
    # 256 / 0.418 = 612.4
    assert diagnose_document(one)["samples_per_s"] == pytest.approx(612.44, abs=0.01)
    two = replace(one, facts=replace(one.facts, replica_count=2))
    assert diagnose_document(two)["samples_per_s"] == pytest.approx(1224.88, abs=0.01)


def test_a_fix_that_was_proven_stands_with_its_proof() -> None:
    document = json.loads(to_json(diagnose_document(fixed(written=("out/recipe.toml",)))))
    first, second = document["findings"]
    assert first["proven_gain"] == {"low": 2.35, "best": 2.41, "high": 2.47}
    assert (first["kept"], first["agrees"]) == (True, True)
    assert (second["proven_gain"], second["kept"], second["agrees"]) == (None, False, None)
    assert document["kept"] == {"input.prefetch": -1, "input.parallel_calls": -1}
    assert [proof["verdict"] for proof in document["proofs"]] == ["faster", "no_difference"]
    assert document["recipe"]["input"]["prefetch"] == -1
    assert document["written"] == ["out/recipe.toml"]


def test_a_leak_is_an_error_and_has_no_gain() -> None:
    document = diagnose_document(told(only(LEAK)))
    assert document["primary"]["severity"] == "error"
    assert document["primary"]["expected_gain"] is None


def test_a_number_that_is_none_becomes_null() -> None:
    one = fixed()
    wrong = replace(PROOF, kept=False, agreement=replace(AGREEMENT, difference_ratio=math.inf))
    one = replace(one, proven=replace(one.proven, proofs=(wrong, SLOWER)))
    document = json.loads(to_json(diagnose_document(one)))
    assert document["proofs"][0]["agreement"]["difference_ratio"] is None


def test_a_note_is_told_once() -> None:
    one = told()
    same = replace(one.proven.diagnosis, notes=one.facts.notes)
    one = replace(one, proven=replace(one.proven, diagnosis=same))
    assert diagnose_document(one)["notes"] == ["The profile holds 20 steps."]
