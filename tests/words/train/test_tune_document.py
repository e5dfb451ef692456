"""words/train/tune_document: the keys that other programs read."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.view.tunings import CHANGED, TOLD

from tfdyno.core.base.codec import to_json
from tfdyno.words.train.tune_document import tune_document

KEYS = {
    "headline", "backend",
    "version", "workload", "title", "device", "device_name", "planned_for", "start", "recipe",
    "recipe_id", "is_proven", "changes_batch", "best", "proof", "proof_ratio", "proof_interval",
    "trials", "counts", "space", "space_size", "left", "ended", "asked_trials", "runs_per_trial",
    "confidence_ratio", "spread_ratio", "engine", "uncompared", "notes", "folder", "made_at",
}  # fmt: skip
TRIAL_KEYS = {
    "number", "status", "ran", "reason", "changes", "batch_size", "changes_batch", "samples_per_s",
    "interval_per_s", "rates_per_s", "peak_memory_bytes", "same_as", "measurement", "where",
    "expected", "retreats",
}  # fmt: skip


def test_the_keys_are_documented_ones_and_survive_json() -> None:
    found = json.loads(to_json(tune_document(TOLD, folder="out")))
    assert set(found) == KEYS
    assert all(set(one) == TRIAL_KEYS for one in found["trials"])
    assert found["best"]["number"] == 1
    assert found["recipe"] == {"execution": "graph", "steps_per_execution": 8}
    assert (found["proof_ratio"], found["proof_interval"]) == (1.8, [1.7, 1.9])
    assert found["is_proven"]
    assert not found["changes_batch"]


def test_what_was_not_measured_is_null() -> None:
    found = tune_document(replace(TOLD, best=None, proof=None))
    assert found["best"] is found["proof"] is found["proof_ratio"] is None
    unfit = found["trials"][3]
    assert unfit["samples_per_s"] is unfit["interval_per_s"] is unfit["peak_memory_bytes"] is None
    assert unfit["expected"]["samples_per_s"] is None
    assert unfit["expected"]["memory_bytes"]["low"] == 9e9


def test_a_changed_batch_is_a_field_of_its_own() -> None:
    assert tune_document(CHANGED)["changes_batch"]
