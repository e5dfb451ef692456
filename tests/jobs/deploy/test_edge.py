"""A model judged, timed and written for devices; what is written is compiled and run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tfdyno.catalog.edge_devices import parse_list
from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.deploy.edge import EdgeRequest, edge
from tfdyno.jobs.deploy.models import AddRequest, add, model_store

if TYPE_CHECKING:
    from tfdyno.core.deploy.edge import EdgeReport

DATA = Path(__file__).parents[1].parent / "data" / "litert"
INTEGERS = DATA / "cnn-integers.tflite"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, EdgeReport]:
    folder = tmp_path_factory.mktemp("edge") / "written"
    request = EdgeRequest(
        model=str(INTEGERS), devices=parse_list("esp32-s3,phone-mid"), seconds=0.01, write=folder
    )
    return folder, edge(request)


def test_the_answer_has_needs_times_and_verdicts(written: tuple[Path, EdgeReport]) -> None:
    report = written[1]
    # MUL of two values of 26 x 26 x 8 bytes
    assert report.need.live_bytes == 2 * 26 * 26 * 8
    assert report.need.integer_arithmetic > 0.99 * report.need.float_arithmetic
    assert [one.threads for one in report.timings] == [1, 2]
    fits = {one.device: one.fits for one in report.verdicts}
    assert fits == {"esp32-s3": False, "phone-mid": True}
    assert report.verdicts[0].obstacles == ("LiteRT for Microcontrollers has no GELU.",)
    assert report.inputs[0].scale > 0


def test_the_folder_names_the_models_own_ports(written: tuple[Path, EdgeReport]) -> None:
    folder = written[0]
    assert (folder / "model.tflite").read_bytes() == INTEGERS.read_bytes()
    android = (folder / "android.md").read_text()
    assert 'mapOf("image" to imageIn)' in android
    assert "ByteBuffer.allocateDirect(784)" in android  # 28 x 28 x 1 bytes
    assert "The GPU delegate does not have GELU, MEAN" in android
    assert "--minShapes=image:1x28x28x1" in (folder / "jetson.md").read_text()
    micro = (folder / "micro_main.cc").read_text()
    assert "resolver.AddConv2D();" in micro
    assert "// GELU: LiteRT for Microcontrollers has none" in micro
    assert json.loads((folder / "edge.json").read_text())["devices"][0]["device"] == "esp32-s3"
    readme = (folder / "README.md").read_text()
    assert all(f"`{one.name}`" in readme for one in folder.iterdir() if one.name != "README.md")
    assert [one.name for one in folder.parent.iterdir()] == ["written"]  # nothing beside it


def test_the_script_for_a_board_runs(written: tuple[Path, EdgeReport], tmp_path: Path) -> None:
    images = np.random.default_rng(0).random((3, 28, 28, 1), dtype=np.float32)
    np.savez(tmp_path / "in.npz", image=images)
    words = [sys.executable, str(written[0] / "run_model.py"), "--data", str(tmp_path / "in.npz"),
             "--threads", "1", "--calls", "20"]  # fmt: skip
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("other [[") or done.stdout.startswith("classes [[")
    assert "median" in done.stdout
    assert "1 threads" in done.stdout


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("m.tflite", None, "does not exist; name a .tflite file"),
        ("m.txt", b"x", "is neither a .tflite nor a .keras file"),
        ("m.tflite", b"hello world", "is not a LiteRT model"),
        ("m.tflite", INTEGERS.read_bytes()[:2500], "is a damaged LiteRT model"),
    ],
)
def test_what_is_no_model_is_refused(
    tmp_path: Path, name: str, content: bytes | None, told: str
) -> None:
    path, target = tmp_path / name, tmp_path / "written"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=told):
        edge(EdgeRequest(model=str(path), devices=parse_list("phone-mid"), write=target))
    assert not target.exists()


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    request = EdgeRequest(model=str(INTEGERS), devices=parse_list("phone"), write=tmp_path)
    with pytest.raises(UsageError, match="exists already; name a new folder"):
        edge(request)


def test_a_model_that_needs_tensorflow_on_the_device_is_refused(tmp_path: Path) -> None:
    # A custom operator of another name than LiteRT knows: as a file with Select TF operators.
    from ai_edge_litert import schema_py_generated as schema
    from flatbuffers import Builder

    model = schema.ModelT.InitFromPackedBuf((DATA / "wave-int8.tflite").read_bytes(), 0)
    for code in model.operatorCodes:
        if code.builtinCode == schema.BuiltinOperator.SIN:
            code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.CUSTOM
            code.customCode = "FlexErfinv"
    builder = Builder(4096)
    builder.Finish(model.Pack(builder), b"TFL3")
    path = tmp_path / "flex.tflite"
    path.write_bytes(bytes(builder.Output()))
    with pytest.raises(UsageError, match="needs operators of TensorFlow that LiteRT does not"):
        edge(EdgeRequest(model=str(path), devices=parse_list("phone")))


@pytest.mark.tf
def test_a_function_is_converted_first(tmp_path: Path) -> None:
    script = tmp_path / "net.py"
    script.write_text(
        "import keras\n"
        "def model():\n"
        "    return keras.Sequential([keras.Input((8,), name='x'), keras.layers.Dense(3)])\n"
    )
    request = EdgeRequest(
        model=f"{script}:model", devices=parse_list("esp32-s3"), threads=(), write=tmp_path / "out"
    )
    report = edge(request)
    assert report.converted_from == f"{script}:model"
    assert report.need.float_arithmetic == 2 * 8 * 3
    assert report.verdicts[0].fits
    assert "litert-int8" in report.verdicts[0].advice[0]
    assert f"tfdyno export {script}:model --to onnx" in (tmp_path / "out/jetson.md").read_text()


def test_a_name_of_the_model_store_is_judged_by_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFDYNO_STORE", str(tmp_path / "store"))
    add(model_store(), AddRequest(path=INTEGERS, name="cnn"))
    report = edge(EdgeRequest(model="cnn:1", devices=parse_list("phone-mid"), threads=()))
    assert report.model == "cnn:1"
    assert report.converted_from == ""
    assert report.need.file_bytes == INTEGERS.stat().st_size
    with pytest.raises(UsageError, match="cnn has no version 2"):
        edge(EdgeRequest(model="cnn:2", devices=parse_list("phone-mid"), threads=()))
