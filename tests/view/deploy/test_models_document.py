"""view/models_document: the documented keys, all of them JSON."""

from __future__ import annotations

import json
from pathlib import Path

from tfdyno.core.base.codec import to_json
from tfdyno.core.deploy.model_version import Artefact, Collected, Lineage, ModelVersion, StoredFile
from tfdyno.view.deploy.models_document import collected_document, list_document, version_document

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
