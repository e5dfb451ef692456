"""jobs/serve_render: the folder appears whole, with the model where the server looks for it."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.deploy.model_version import Lineage
from tfdyno.jobs.serve.render import Rendered, RenderRequest, render
from tfdyno.store.model_store import ModelStore

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.deploy.serving_plan import ServingPlan

SIZE = {
    "target_requests_per_s": 800.0, "min_replicas": 2, "max_replicas": 9, "max_batch_size": 32,
    "max_delay_s": 0.004, "p99_s": 0.05, "target_utilisation_ratio": 0.7,
}  # fmt: skip


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "cnn"
    (folder / "variables").mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"graph")
    (folder / "variables" / "weights").write_bytes(b"w")
    return folder


def rendered(
    tmp_path: Path, reference: Path | str, engine: str, **given: Any
) -> Rendered[ServingPlan]:
    asked = {"output": tmp_path / "out", **given}
    return render(RenderRequest(reference=str(reference), engine=engine, **asked))


@pytest.mark.parametrize(
    ("engine", "given", "file"),
    [
        ("tfserving", {}, "models/cnn/1/variables/weights"),
        ("triton", {}, "models/cnn/1/model.savedmodel/variables/weights"),
        ("kserve", {"storage": "s3://b/cnn"}, "models/1/variables/weights"),
        ("kubernetes", {}, "models/cnn/1/variables/weights"),
        ("rayserve", {}, "models/cnn/1/variables/weights"),
    ],
)
def test_the_model_lies_where_the_server_looks_for_it(
    tmp_path: Path, model: Path, engine: str, given: dict[str, Any], file: str
) -> None:
    found = rendered(tmp_path, model, engine, **given)
    assert (tmp_path / "out" / file).read_bytes() == b"w"
    assert all((tmp_path / "out" / path).is_file() for path in found.files)
    assert (tmp_path / "out" / found.model).exists()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["cnn", "out"]


@pytest.mark.parametrize(
    ("engine", "given", "option"),
    [
        ("tfserving", {"replicas": "2:8"}, "--replicas"),
        ("triton", {"storage": "pvc://models"}, "--storage"),
        ("kubernetes", {"port": 9000}, "--port"),
        ("rayserve", {"deadline_s": 0.1}, "--deadline-ms"),
        ("rayserve", {"memory_bytes": 1 << 30}, "--memory"),
    ],
)
def test_what_the_files_of_a_server_have_no_place_for_is_refused(
    tmp_path: Path, model: Path, engine: str, given: dict[str, Any], option: str
) -> None:
    with pytest.raises(UsageError, match=f"{option} is nothing that --render {engine} looks at"):
        rendered(tmp_path, model, engine, **given)
    assert not (tmp_path / "out").exists()


def test_a_size_gives_batches_and_replicas_and_what_is_said_comes_first(
    tmp_path: Path, model: Path
) -> None:
    size = tmp_path / "size.json"
    size.write_text(json.dumps({"autoscaling": SIZE}))
    plan = rendered(tmp_path, model, "kubernetes", size=size, max_delay_s=0.001).plan
    assert (plan.max_batch_size, plan.max_delay_s) == (32, 0.001)
    assert (plan.replicas_min, plan.replicas_max, plan.target_requests_per_s) == (2, 9, 800.0)
    other = rendered(tmp_path, model, "kserve", size=size, replicas="3", storage="s3://b",
                     output=tmp_path / "b")  # fmt: skip
    assert (other.plan.replicas_min, other.plan.replicas_max) == (3, 3)


@pytest.mark.parametrize(
    ("content", "words"),
    [("{", "is not valid JSON"), ("[]", "cannot be used for replicas"),
     ('{"autoscaling": null}', "holds no autoscaling"), ('{"autoscaling": {}}', "lacks a key")],
)  # fmt: skip
def test_a_size_that_says_nothing_is_told(
    tmp_path: Path, model: Path, content: str, words: str
) -> None:
    size = tmp_path / "size.json"
    size.write_text(content)
    with pytest.raises(UsageError, match=words):
        rendered(tmp_path, model, "kubernetes", size=size)
    assert not (tmp_path / "out").exists()


def test_the_promoted_version_of_a_stored_model_is_taken(tmp_path: Path, model: Path) -> None:
    store = ModelStore(tmp_path / "store")
    for graph in (b"one", b"two"):
        (model / "saved_model.pb").write_bytes(graph)
        store.add("shop", model, kind="savedmodel", lineage=Lineage(), added_at="")
    store.promote("shop", 1, at="")
    found = rendered(tmp_path, "shop", "tfserving", store=store.folder)
    assert (found.model, found.plan.version) == ("models/shop/1", 1)
    copy = tmp_path / "out" / found.model / "saved_model.pb"
    assert copy.read_bytes() == b"one"
    assert copy.stat().st_mode & 0o200
    newest = rendered(tmp_path, "shop:2", "tfserving", store=store.folder, output=tmp_path / "b")
    assert newest.model == "models/shop/2"


def test_a_model_that_the_server_does_not_take_is_refused_with_what_to_do(
    tmp_path: Path, model: Path
) -> None:
    for name in ("a.keras", "a.onnx"):
        (tmp_path / name).write_bytes(b"x")
    cases = {
        ("a.keras", "tfserving"): r"which no server elsewhere takes; .* --to savedmodel",
        ("a.keras", "triton"): r"tfdyno export .*a\.keras --to onnx",
        ("a.onnx", "tfserving"): "does not take a model of the kind onnx",
        ("none.onnx", "triton"): "does not exist",
        ("keras:ResNet50", "triton"): r"is code, .*tfdyno export keras:ResNet50 --to savedmodel "
        r"--output ResNet50, then tfdyno serve --render triton --output \S+ ResNet50\.$",
        ("none.py:make", "triton"): r"there is no file none\.py",
        ("cnn", "tfservin"): r"did you mean tfserving\?",
    }
    for (name, engine), words in cases.items():
        reference = name if ":" in name else tmp_path / name
        with pytest.raises(UsageError, match=words):
            rendered(tmp_path, reference, engine)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_there_is_left_and_a_full_disk_leaves_nothing(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="is there already; name a new folder"):
        rendered(tmp_path, model, "tfserving", output=model)
    with pytest.raises(UsageError, match="there is no folder"):
        rendered(tmp_path, model, "tfserving", output=tmp_path / "a" / "b")

    def full(*_words: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(ToolError, match="No space left on device"):
        rendered(tmp_path, model, "tfserving")
    assert [one.name for one in tmp_path.iterdir()] == ["cnn"]
