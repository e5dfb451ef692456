"""view/models_text: the list fits the screen, and one version tells where it came from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tfdyno.core.base.codec import to_json
from tfdyno.core.deploy.model_version import (
    Artefact,
    Collected,
    Lineage,
    ModelVersion,
    Promotion,
    StoredFile,
)
from tfdyno.view.deploy.models_text import (
    collected_document,
    collected_text,
    list_document,
    metrics_by_data,
    metrics_words,
    models_text,
    version_document,
    version_text,
)


def version(number: int = 1, **more: object) -> ModelVersion:
    file = StoredFile(path="", size_bytes=2048, sha256="a" * 64)
    artefact = Artefact(kind="keras", name="model.keras", digest="d", files=(file,))
    lineage = Lineage(
        metrics={"loss": 0.25, "val_accuracy": 0.9},
        recipe_id="3ab9011a",
        recipe={"precision": "mixed_float16", "batch_size": 64, "strategy": "auto"},
        data="train.csv",
        data_sha256="f" * 64,
        environment={"cards": [{"name": "L4"}], "tensorflow": "2.21.0", "keras": "3.15.1"},
        verification={
            "format": "onnx",
            "verification": {
                "rows": 100,
                "differences": [{"max_abs": 4e-7}],
                "accuracy": {"before_ratio": 0.91, "after_ratio": 0.905},
            },
        },
        parent="cnn:1",
        sources={"train.py": "b" * 64},
    )
    given = {"label": "", "promoted": False, **more}
    return ModelVersion(
        name="cnn", version=number, path=Path("/store/model.keras"), artefact=artefact,
        lineage=lineage, added_at="2026-11-23T16:00:00+00:00", **given,  # type: ignore[arg-type]
    )  # fmt: skip


def test_the_newest_of_a_model_comes_first_with_what_is_in_use() -> None:
    text = models_text(
        "/store", [version(1, promoted=True), version(2, label="gold")], 4096, width=90
    )
    lines = text.splitlines()
    assert lines[0].split() == ["version", "kind", "size", "metrics", "label", "added"]
    assert lines[1].split()[:2] == ["cnn:2", "keras"]
    assert lines[2].split()[:3] == ["cnn:1", "production", "keras"]
    assert lines[4] == "2 versions of 1 model in /store, 4 KiB on disk (equal files once)."
    assert models_text("/s", [], 0) == "/s holds no models; tfdyno models add PATH keeps one."


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_list_is_no_wider_than_the_screen(width: int) -> None:
    versions = [version(1, promoted=True), version(2, label="a" * 12)]
    lines = models_text("/store", versions, 4096, width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert "cnn:2" in lines[1]


def test_one_version_tells_where_it_came_from() -> None:
    history = [Promotion(action="promote", version=2, at="then")]
    text = version_text(version(2, promoted=True), history, ["a is missing"], width=100)
    for words in (
        "cnn:2 (production)",
        "keras, 1 file, 2 KiB",
        "damaged     a is missing",
        "parent      cnn:1",
        "3ab9011a: precision mixed_float16, batch_size 64",
        "train.csv (ffffffffffff)",
        "val_accuracy 0.9000, loss 0.2500",
        "L4, TensorFlow 2.21.0, Keras 3.15.1",
        "onnx, differs by at most 4e-07 over 100 rows, accuracy 0.9100 before, 0.9050 after",
        "train.py bbbbbbbbbbbb",
        "promoted then",
    ):
        assert words in text


def test_a_difference_that_is_no_number_is_left_out() -> None:
    found = {"rows": 9, "differences": [{"max_abs": None}, {"max_abs": 0.5}]}
    lineage = Lineage(verification={"format": "litert", "verification": found})
    text = version_text(replace(version(), lineage=lineage), [], width=100)
    assert "litert, differs by at most 0.5 over 9 rows" in text


@pytest.mark.parametrize(
    ("is_verified", "words"),
    [(True, "runs/a (finished)"), (False, "(finished, not verified that the model is of it)")],
)
def test_a_run_that_may_be_another_models_is_told_so(is_verified: bool, words: str) -> None:
    lineage = Lineage(run="runs/a", run_status="finished", run_verified=is_verified)
    assert words in version_text(replace(version(), lineage=lineage), [], width=100)


def test_few_metrics_are_the_telling_ones() -> None:
    metrics = {"loss": 1.0, "accuracy": 0.5, "val_loss": 2.0, "val_accuracy": 0.25}
    assert metrics_words(metrics, most=2) == "val_accuracy 0.2500, val_loss 2, …"


def test_each_metric_says_which_data_it_is_of() -> None:
    lineage = Lineage(
        metrics={"loss": 0.25, "accuracy": 0.93, "val_loss": 0.5, "f1": 0.75, "auc": 0.875},
        metric_origins={
            "loss": "training", "accuracy": "export", "val_loss": "training", "f1": "given",
        },
    )  # fmt: skip
    assert metrics_by_data(lineage) == (
        "accuracy 0.9300 (data of the export); val_loss 0.5000 (validation, last epoch); "
        "loss 0.2500 (training data, last epoch); f1 0.7500 (as given); auc 0.8750"
    )


def test_a_removal_says_which_and_how_many_bytes() -> None:
    found = Collected(versions=(version(1),), freed_bytes=2048)
    assert collected_text(found, removed=False).splitlines() == [
        "Would remove 1 version; 2 KiB on disk.",
        "  cnn:1  keras, 2 KiB, added 2026-11-23",
    ]
    leftovers = Collected(versions=(), freed_bytes=1024)
    assert collected_text(leftovers, removed=True) == "Removed leftovers; 1 KiB on disk."
    nothing = Collected(versions=(), freed_bytes=0)
    assert collected_text(nothing, removed=True) == "There is nothing to remove."


FILE = StoredFile(path="a", size_bytes=5, sha256="s")
VERSION = ModelVersion(
    name="cnn",
    version=2,
    path=Path("/store/model"),
    artefact=Artefact(kind="savedmodel", name="model", digest="d", files=(FILE,)),
    lineage=Lineage(metrics={"accuracy": 0.5}),
    added_at="then",
    promoted=True,
)


def test_a_version_is_told_whole() -> None:
    told = json.loads(to_json(version_document(VERSION, ["bad"])))
    assert told["id"] == "cnn:2"
    assert told["path"] == "/store/model"
    assert told["files"] == [{"path": "a", "size_bytes": 5, "sha256": "s"}]
    assert told["lineage"]["metrics"] == told["metrics"] == {"accuracy": 0.5}
    assert told["faults"] == ["bad"]


def test_the_list_is_by_model() -> None:
    told = list_document("/store", [VERSION], 5)
    assert told["models"][0]["production"] == 2
    assert [one["version"] for one in told["models"][0]["versions"]] == [2]


def test_a_removal_tells_what_goes() -> None:
    found = Collected(versions=(VERSION,), freed_bytes=5)
    told = collected_document(found, removed=False)
    assert (told["removed"], told["freed_bytes"], told["versions"][0]["id"]) == (False, 5, "cnn:2")
