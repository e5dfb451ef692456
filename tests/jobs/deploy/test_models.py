"""jobs/models: what may be kept, under which name, and where it came from."""

from __future__ import annotations

import hashlib
import json
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.choose.workload import Workload
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.jobs.deploy.models import (
    AddRequest,
    add,
    copy_out,
    exact,
    model_store,
    needs_number,
    promote,
    roll_back,
)
from tfdyno.store.model_store import ModelStore
from tfdyno.store.run_folder import RunFolder, RunRecord

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "store")


def keras_file(path: Path, content: str = "{}", weights: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", content)
        if weights:
            archive.writestr("model.weights.h5", weights)
    return path


def saved_model(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"graph")
    return folder


def training_run(folder: Path) -> Path:
    """A run's folder as ``tfdyno train`` leaves it."""
    found = RunFolder(folder)
    found.prepare()
    found.write_recipe(Recipe(precision="mixed_bfloat16", seed=7))
    history: dict[str, object] = {"loss": [2.0, 1.0], "accuracy": [0.5, 0.75], "lost": [1.0, None]}
    found.write(
        RunRecord(
            workload=Workload(reference="train.py", kind="script"),
            folder=str(folder.parent),
            data="data.py:make",
            source_sha256="c0de",
            status="finished",
            seed=7,
            outcome={"history": history},
        )
    )
    keras_file(folder / "model.keras")
    (folder.parent / "data.py").write_text("make = 1\n")
    return folder


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_run_gives_recipe_metrics_seed_data_and_sources(
    store: ModelStore, tmp_path: Path
) -> None:
    run = training_run(tmp_path / "runs" / "fashion")
    kept, is_new = add(store, AddRequest(path=run))
    lineage = kept.lineage
    assert (kept.id, is_new, kept.artefact.kind) == ("fashion:1", True, "keras")
    assert lineage.metrics == {"loss": 1.0, "accuracy": 0.75}  # the last, where it is a number
    assert lineage.recipe["precision"] == "mixed_bfloat16"
    assert lineage.recipe_id == Recipe(precision="mixed_bfloat16", seed=7).id
    assert (lineage.workload, lineage.seed, lineage.run_status) == ("train.py", 7, "finished")
    assert (lineage.data, lineage.data_sha256) == (
        "data.py:make", sha256(tmp_path / "runs" / "data.py"),
    )  # fmt: skip
    assert lineage.sources["train.py"] == "c0de"
    assert lineage.sources["recipe.toml"] == sha256(run / "recipe.toml")


def test_what_is_given_comes_before_what_the_run_says(store: ModelStore, tmp_path: Path) -> None:
    run = training_run(tmp_path / "run")
    data, code = tmp_path / "train.csv", tmp_path / "own.py"
    data.write_text("1,2\n")
    code.write_text("a = 1\n")
    estimate = tmp_path / "estimate.json"
    estimate.write_text('{"estimates": [{"gpu": "l4"}]}')
    asked = AddRequest(
        path=saved_model(tmp_path / "fashion" / "3"),
        run=run,
        data=data,
        estimate=estimate,
        code=(code,),
        metrics={"accuracy": 0.9},
        label="gold",
    )
    kept, _ = add(store, asked)
    assert (kept.name, kept.label) == ("fashion", "gold")
    assert kept.lineage.metrics == {"loss": 1.0, "accuracy": 0.9}
    assert kept.lineage.metric_origins == {"loss": "training", "accuracy": "given"}
    assert (kept.lineage.data, kept.lineage.data_sha256) == (str(data), sha256(data))
    assert kept.lineage.estimate == {"estimates": [{"gpu": "l4"}]}
    assert kept.lineage.sources[str(code)] == sha256(code)


def exported(
    folder: Path, *, content: bytes = b"onnx", source: dict[str, str] | None = None, **more: Any
) -> Path:
    """An export and its record, as ``tfdyno export`` writes them."""
    path = folder / "fashion.onnx"
    path.write_bytes(content)
    one = {
        "format": "onnx",
        "path": str(path),
        "sha256": sha256(path),
        "verification": {
            "rows": 100,
            "differences": [{"output": "logits", "max_abs": 4e-7}],
            "accuracy": {"before_ratio": 0.9, "after_ratio": 0.89},
        },
    }
    record = {"artefacts": [{"path": "other.tflite"}, {**one, **more}], "gates": {"x": 1}}
    record |= {"source": source} if source else {}
    (folder / "export.json").write_text(json.dumps(record))
    return path


def test_an_export_brings_what_it_was_measured_to_be(store: ModelStore, tmp_path: Path) -> None:
    first, _ = add(store, AddRequest(path=keras_file(tmp_path / "fashion.keras")))
    asked = AddRequest(path=exported(tmp_path), parent="fashion:1")
    kept, _ = add(store, asked)
    assert (first.id, kept.id, kept.lineage.parent) == ("fashion:1", "fashion:2", "fashion:1")
    assert kept.lineage.metrics == {"accuracy": 0.89}
    assert kept.lineage.metric_origins == {"accuracy": "export"}
    verification: Any = kept.lineage.verification
    assert verification["verification"]["differences"][0]["max_abs"] == 4e-7
    assert verification["gates"] == {"x": 1}


def of_run(store: ModelStore, path: Path, run: Path) -> bool:
    return add(store, AddRequest(path=path, run=run))[0].lineage.run_verified


def test_a_model_is_of_a_run_by_its_bytes_its_weights_or_what_it_was_exported_from(
    store: ModelStore, tmp_path: Path
) -> None:
    run = training_run(tmp_path / "run")
    model = keras_file(run / "model.keras", weights="w")
    saved_again = keras_file(tmp_path / "again.keras", content="[]", weights="w")
    assert add(store, AddRequest(path=run))[0].lineage.run_verified
    assert of_run(store, saved_again, run)
    for number, origin in enumerate((model, saved_again, run)):
        is_file = origin.is_file()
        source = {"kind": "keras_file", "reference": str(origin),
                  "sha256": sha256(origin if is_file else model)}  # fmt: skip
        assert of_run(store, exported(tmp_path, content=b"%d" % number, source=source), run)
    away = {"kind": "keras_file", "reference": "cnn:3", "sha256": sha256(model)}  # of a store
    assert of_run(store, exported(tmp_path, content=b"away", source=away), run)


def test_a_model_that_is_not_of_the_run_is_refused(store: ModelStore, tmp_path: Path) -> None:
    run = training_run(tmp_path / "run")
    keras_file(run / "model.keras", weights="w")
    other = keras_file(tmp_path / "other.keras", weights="v")
    source = {"kind": "keras_file", "reference": str(other), "sha256": sha256(other)}
    gone = {**source, "reference": "gone.keras"}
    (tmp_path / "away").mkdir()
    for path, words in (
        (other, "its weights are not those of"),
        (keras_file(tmp_path / "bare.keras"), "its weights are not those of"),
        (exported(tmp_path, source=source), r"it was exported from .*other\.keras, which is not"),
        (
            exported(tmp_path / "away", source=gone),
            r"it was exported from gone\.keras, which is not",
        ),
    ):
        with pytest.raises(UsageError, match=rf"is not of the run .*run: {words}"):
            of_run(store, path, run)
    assert store.versions() == ()


def test_a_run_that_nothing_ties_to_the_model_is_marked_so(
    store: ModelStore, tmp_path: Path
) -> None:
    run = training_run(tmp_path / "run")
    assert not of_run(store, saved_model(tmp_path / "graph"), run)
    by_code = {"kind": "function", "reference": "train.py:cnn", "sha256": "c0de"}
    assert not of_run(store, exported(tmp_path, source=by_code), run)
    (run / "model.keras").unlink()
    assert not of_run(store, keras_file(tmp_path / "a.keras"), run)


def test_a_record_of_another_file_is_refused(store: ModelStore, tmp_path: Path) -> None:
    path = exported(tmp_path, sha256="0" * 64)
    with pytest.raises(UsageError, match=r"is not the file that export\.json was written"):
        add(store, AddRequest(path=path))
    folder = saved_model(tmp_path / "cnn")
    record = {"artefacts": [{"path": "cnn", "format": "savedmodel", "sha256": "0" * 64}]}
    (folder / "export.json").write_text(json.dumps(record))
    with pytest.raises(UsageError, match=r"cnn is not the folder that export\.json was written"):
        add(store, AddRequest(path=folder))
    assert store.versions() == ()


def test_the_record_in_a_saved_model_is_read_and_is_no_part_of_it(
    store: ModelStore, tmp_path: Path
) -> None:
    folder = saved_model(tmp_path / "cnn")
    record = {"artefacts": [{"path": "elsewhere", "format": "savedmodel"}]}
    (folder / "export.json").write_text(json.dumps(record))
    kept, _ = add(store, AddRequest(path=folder))
    assert kept.lineage.verification["format"] == "savedmodel"
    assert [one.path for one in kept.artefact.files] == ["saved_model.pb"]


def test_the_record_of_one_file_has_its_name_in_front(store: ModelStore, tmp_path: Path) -> None:
    path = exported(tmp_path)
    (tmp_path / "export.json").rename(tmp_path / "fashion.onnx.export.json")
    assert add(store, AddRequest(path=path))[0].lineage.metrics == {"accuracy": 0.89}


@pytest.mark.parametrize(
    ("path", "name"),
    [("a/fashion.keras", "fashion"), ("fashion/model.keras", "fashion"), ("f.b.keras", "f.b")],
)
def test_the_name_is_the_last_part_of_the_path_that_says_something(
    store: ModelStore, tmp_path: Path, path: str, name: str
) -> None:
    assert add(store, AddRequest(path=keras_file(tmp_path / path)))[0].name == name


def test_what_is_no_model_is_refused_and_nothing_is_made(store: ModelStore, tmp_path: Path) -> None:
    saved_model(tmp_path / "many" / "1")
    saved_model(tmp_path / "many" / "12")
    (tmp_path / "empty").mkdir()
    files = {
        "broken.keras": (b"PK broken", "is no whole .keras file: file is not a zip file"),
        "empty.onnx": (b"", "is no whole .onnx file: it is empty"),
        "other.tflite": (b"\0" * 99, "it does not have TFL3 where such files have it"),
        "weights.h5": (b"x", r"is no model that the store knows: it takes .keras, .onnx"),
    }
    cases = {name: words for name, (_, words) in files.items()}
    for name, (content, _) in files.items():
        (tmp_path / name).write_bytes(content)
    cases |= {
        "none": "does not exist",
        "many": "holds 2 SavedModels; name one of them, as .*many/12",
        "empty": r"is no SavedModel: there is no saved_model.pb in it",
        "many/1/saved_model.pb": "is a part of a SavedModel; name .*many/1",
    }
    for name, words in cases.items():
        with pytest.raises(UsageError, match=words):
            add(store, AddRequest(path=tmp_path / name))
    assert not store.folder.exists()


def test_what_is_named_beside_the_model_has_to_be_there(store: ModelStore, tmp_path: Path) -> None:
    path = keras_file(tmp_path / "a.keras")
    (tmp_path / "list.json").write_text("[1]")
    for more, words in (
        ({"run": tmp_path}, "holds no training run"),
        ({"data": tmp_path / "none"}, "cannot read .*none"),
        ({"estimate": tmp_path / "list.json"}, "is not what tfdyno estimate --json writes"),
        ({"code": (tmp_path / "none.py",)}, "cannot read .*none.py"),
        ({"parent": "b:1"}, "has no model 'b'"),
    ):
        given: dict[str, Any] = more
        with pytest.raises(UsageError, match=words):
            add(store, AddRequest(path=path, **given))
    assert store.versions() == ()


def test_the_lineage_of_a_version_is_not_written_anew(store: ModelStore, tmp_path: Path) -> None:
    path = keras_file(tmp_path / "a.keras")
    add(store, AddRequest(path=path, metrics={"accuracy": 0.5}))
    same, is_new = add(store, AddRequest(path=path))
    assert (same.id, is_new) == ("a:1", False)
    with pytest.raises(UsageError, match="these files are a:1 already, with other metrics"):
        add(store, AddRequest(path=path, metrics={"accuracy": 0.6}))
    with pytest.raises(UsageError, match="tfdyno models label a:1 gold"):
        add(store, AddRequest(path=path, label="gold"))
    assert store.version("a", 1).lineage.metrics == {"accuracy": 0.5}


def damaged(store: ModelStore, version: int) -> None:
    path = store.version("a", version).path
    path.chmod(0o644)
    path.write_bytes(b"bad")


def test_a_damaged_version_is_neither_promoted_nor_gone_back_to(
    store: ModelStore, tmp_path: Path
) -> None:
    for content in ("{}", "[]", "0"):
        add(store, AddRequest(path=keras_file(tmp_path / "a.keras", content)))
    assert promote(store, "a:1")[1]
    assert promote(store, "a:2")[0].promoted
    assert roll_back(store, "a")[0].id == "a:1"
    promote(store, "a:2")
    damaged(store, 1)
    damaged(store, 3)
    with pytest.raises(ToolError, match=r"a:1 is damaged: .*model\.keras has 3 bytes"):
        roll_back(store, "a")
    with pytest.raises(ToolError, match="a:3 is damaged"):
        promote(store, "a:3")
    assert store.promoted("a") == 2


def test_a_version_is_copied_out_and_may_be_written_there(
    store: ModelStore, tmp_path: Path
) -> None:
    add(store, AddRequest(path=saved_model(tmp_path / "a")))
    output = tmp_path / "out"
    assert copy_out(store, "a", output).id == "a:1"
    assert (output / "saved_model.pb").read_bytes() == b"graph"
    assert (output / "saved_model.pb").stat().st_mode & 0o200
    with pytest.raises(UsageError, match="out is there already"):
        copy_out(store, "a:1", output)
    with pytest.raises(UsageError, match="there is no folder"):
        copy_out(store, "a:1", tmp_path / "no" / "out")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a", "out", "store"]


def test_a_name_alone_means_the_promoted_version_else_the_newest(
    store: ModelStore, tmp_path: Path
) -> None:
    for content in ("{}", "[]"):
        add(store, AddRequest(path=keras_file(tmp_path / "a.keras", content)))
    assert exact(store, "a") == ("a", 2)
    promote(store, "a:1")
    assert exact(store, "a") == ("a", 1)
    with pytest.raises(UsageError, match="'a' names no version; write a:V, as a:1"):
        needs_number("a")


def test_the_store_is_where_the_user_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TFDYNO_STORE", raising=False)
    monkeypatch.setenv("TFDYNO_DATA", str(tmp_path))
    assert model_store().folder == tmp_path / "models"
    monkeypatch.setenv("TFDYNO_STORE", str(tmp_path / "s"))
    assert model_store().folder == tmp_path / "s"
    assert model_store(tmp_path / "given").folder == tmp_path / "given"
