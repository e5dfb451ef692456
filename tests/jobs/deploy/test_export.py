"""jobs/export: real models to real formats, compared; what does not pass leaves nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.export import ENDINGS, ExportResult, Format, Gates
from tfdyno.jobs.deploy.export import ExportRequest, export
from tfdyno.view.deploy.export_text import export_text

ROOT = Path(__file__).parents[3]
MODELS = f"{ROOT / 'tests/data/models/exported.py'}"
LANGUAGE = ROOT / "tests/data/models/language.py"
LACKING = [name for name in ("keras_hub", "safetensors") if find_spec(name) is None]
TORCH = os.environ.get("TFDYNO_TORCH_PYTHON", "")
"""An interpreter with PyTorch and Keras."""
pytestmark = pytest.mark.tf


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT), str(ROOT / "src"))))
    return tmp_path


def exported(model: str, *formats: Format, output: str = "out", **fields: object) -> ExportResult:
    named = model if "/" in model or "." in model else f"{MODELS}:{model}"
    request = ExportRequest(model=named, formats=formats, output=Path(output), measure=False)
    return export(replace(request, **fields))  # type: ignore[arg-type]


def left() -> list[str]:
    return sorted(one.name for one in Path.cwd().iterdir())


def test_a_trained_cnn_gives_the_same_digits_in_every_format() -> None:
    found = exported(
        "cnn", "savedmodel", "keras", "onnx", "tensorrt", data=f"{MODELS}:held_out",
        gates=Gates(max_accuracy_drop_ratio=0.0), measure=True,
    )  # fmt: skip
    assert found.passed
    assert left() == ["out"]
    names = ["export.json", "model.keras", "model.onnx", "savedmodel", "tensorrt"]
    assert sorted(one.name for one in Path("out").iterdir()) == names
    assert sorted(one.name for one in Path("out/tensorrt").iterdir()) == [
        "build_engine.py", "build_engine.sh", "model.onnx"
    ]  # fmt: skip
    for one in found.artefacts:
        checked = one.verification
        assert checked.rows == 397
        assert checked.max_abs <= 1e-4
        assert checked.accuracy is not None
        assert checked.accuracy.before_ratio > 0.7
        assert checked.accuracy.after_ratio == checked.accuracy.before_ratio
        assert [each.batch_size for each in checked.latencies] == [1, 32]
        assert one.signature.inputs[0].shape == (None, 8, 8, 1)
        assert one.size_bytes > 10_000
    record = json.loads(Path("out/export.json").read_text())
    assert record["source"]["parameter_count"] == 2794
    assert record["environment"]["tensorflow"]


@pytest.mark.slow
def test_words_are_looked_up_in_a_savedmodel_and_refused_for_onnx_by_layer() -> None:
    assert exported("sentences", "savedmodel").artefacts[0].verification.max_abs == 0.0
    with pytest.raises(UsageError) as told:
        exported("sentences", "onnx", "savedmodel", output="second")
    assert "sentences cannot be exported to onnx: layer 'split' (S" in str(told.value)
    assert left() == ["out"]


@pytest.mark.slow
def test_several_inputs_and_outputs_keep_their_names() -> None:
    found = exported("several", "savedmodel", "keras", "onnx")
    for one in found.artefacts:
        assert [each.name for each in one.signature.inputs] == ["age", "face"]
        assert {each.output for each in one.verification.differences} == {"kind", "price"}
        assert one.verification.max_abs <= 1e-4


def test_pre_and_postprocessing_become_part_of_the_graph() -> None:
    found = exported(
        "cnn", "savedmodel", "onnx", data=f"{MODELS}:pixels", preprocess=f"{MODELS}:scaled",
        postprocess=f"{MODELS}:named", signature=("image=uint8[batch,8,8,1]",),
    )  # fmt: skip
    for one in found.artefacts:
        assert one.signature.inputs[0].dtype == "uint8"
        assert [each.name for each in one.signature.outputs] == ["digit", "sure"]
        assert one.verification.accuracy is not None
        assert one.verification.accuracy.after_ratio > 0.7


def test_a_failed_gate_leaves_nothing_in_place() -> None:
    found = exported("own_layer", "onnx", output="a.onnx", gates=Gates(max_difference=0.0))
    assert not found.passed
    assert "more than the 0 allowed" in found.artefacts[0].failures[0]
    assert left() == []


PREPARED = """
import keras, numpy as np
L = keras.layers
def prepared():
    normal = L.Normalization()
    normal.adapt(np.random.default_rng(0).random((50, 5), dtype="float32"))
    x, y = keras.Input((5,), name="x"), keras.Input((2,), name="a")
    made = L.Concatenate()([normal(x), y])
    return keras.Model([x, y], {"z": L.Dense(2)(made), "b": L.Dense(3)(made)})
"""


@pytest.mark.slow
def test_what_a_normalization_layer_learned_is_a_constant_and_no_input_of_the_onnx_file() -> None:
    Path("prepared.py").write_text(PREPARED)
    found = exported("prepared.py:prepared", "onnx", "savedmodel", "litert")
    assert found.passed
    assert [one.name for one in found.artefacts[0].signature.outputs] == ["z", "b"]


@pytest.mark.slow
def test_half_precision_weights_have_a_floor_alone_unless_a_gate_is_given() -> None:
    found = exported("cnn", "litert-fp16", output="a.tflite")
    assert found.passed
    assert "litert-fp16 may differ by anything that is finite, if 90 % of the" in found.notes[0]
    failed = exported("cnn", "litert-fp16", output="b.tflite", gates=Gates(max_difference=1e-6))
    assert not failed.passed
    assert not any("may differ by" in note for note in failed.notes)


NOTHING = """
import keras, numpy as np
def broken():
    model = keras.Sequential([keras.Input((4,), name="x"), keras.layers.Dense(3)])
    model.set_weights([np.full_like(one, np.nan) for one in model.get_weights()])
    return model
def fixed():
    return keras.Sequential([keras.Input((4,), name="x"), keras.layers.Dense(3)])
def rows():
    return np.random.default_rng(0).random((100, 4), "f4"), np.arange(100) % 3
"""


@pytest.mark.slow
def test_a_model_of_nan_alone_is_not_put_in_place() -> None:
    Path("broken.py").write_text(NOTHING)
    gates = Gates(max_difference=0.001, max_accuracy_drop_ratio=0.01)
    found = exported("broken.py:broken", "savedmodel", data="broken.py:rows", gates=gates)
    assert "nothing was compared" in found.artefacts[0].failures[0]
    assert left() == ["broken.py"]


@pytest.mark.slow
def test_a_hundred_rows_go_through_a_batch_of_32_and_an_untrained_model_is_told() -> None:
    Path("broken.py").write_text(NOTHING)
    found = exported(
        "broken.py:fixed", "savedmodel", "onnx", "keras", "litert", "litert-int8",
        data="broken.py:rows", signature=("x=float32[32,4]",),
    )  # fmt: skip
    assert [one.verification.rows for one in found.artefacts] == [100] * 5
    assert all(one.verification.accuracy.rows == 100 for one in found.artefacts)  # type: ignore[union-attr]
    assert any("no better than naming the commonest class" in note for note in found.notes)


FASHION = """
import keras, numpy as np
from tfdyno.runtime.workload import real_data
data = real_data.load(0)
scaled = lambda images: (images[..., None] / 255.0).astype("float32")
keras.utils.set_random_seed(0)
L = keras.layers
model = keras.Sequential([keras.Input((28, 28, 1), name="image"),
    L.Conv2D(16, 3, activation="relu"), L.MaxPooling2D(), L.BatchNormalization(),
    L.Conv2D(32, 3, activation="relu"), L.MaxPooling2D(), L.Flatten(),
    L.Dense(10, activation="softmax")], name="fashion")
model.compile("adam", "sparse_categorical_crossentropy")
model.fit(scaled(data.train.images), data.train.labels, batch_size=64, epochs=2, verbose=0)
model.save("fashion.keras")
np.savez("test.npz", x=scaled(data.evaluation.images), y=data.evaluation.labels,
         x_train=scaled(data.train.images[:300]))
print(data.name)
"""


@pytest.mark.slow
def test_integers_pass_a_gate_of_one_point_on_real_images(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All of Fashion-MNIST where it is at hand, else scikit-learn's digits as images."""
    done = subprocess.run([sys.executable, "-c", FASHION], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = exported(
        "fashion.keras", "litert", "litert-fp16", "litert-int8", data="test.npz",
        gates=Gates(max_accuracy_drop_ratio=0.01), measure=True,
    )  # fmt: skip
    with capsys.disabled():
        print("\n" + done.stdout + export_text(found, width=140, colour=False))
    assert found.passed
    whole = found.artefacts[2]
    assert whole.details["float_layers"] == []
    assert whole.size_bytes < 0.45 * found.artefacts[0].size_bytes
    assert found.artefacts[0].verification.max_abs <= 1e-4


@pytest.mark.slow
def test_of_several_formats_those_that_pass_are_kept() -> None:
    found = exported("own_layer", "savedmodel", "onnx", gates=Gates(max_difference=0.0))
    assert [one.kept for one in found.artefacts] == [True, False]
    assert sorted(one.name for one in Path("out").iterdir()) == ["export.json", "savedmodel"]


@pytest.mark.slow
@pytest.mark.parametrize("model", ["half", "sequence", "own_layer"])
def test_other_models_pass_the_gate_of_their_type(model: str) -> None:
    assert exported(model, "savedmodel", "keras", "onnx").passed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "kind", "told"),
    [
        ("brain", "onnx", "layer 'conv' (bfloat16)"),
        ("python_inside", "savedmodel", "layer 'doubled' (EagerPyFunc)"),
        ("with_lambda", "keras", "layer 'twice' (Lambda)"),
        ("text", "onnx", "layer 'words' (LookupTableFindV2)"),
        ("never_called", "onnx", "has no signature: it was never called"),
        ("nothing", "onnx", "does not return a Keras model: it returns a str"),
        ("cn", "onnx", "did you mean cnn?"),
    ],
)
def test_what_cannot_be_is_told_before_converting(model: str, kind: Format, told: str) -> None:
    with pytest.raises(UsageError, match=r"^[^\n]*$") as error:
        exported(model, kind, output=f"out{ENDINGS[kind]}")
    assert told in str(error.value)
    assert left() == []


@pytest.mark.slow
def test_a_model_that_was_never_called_is_built_from_the_data() -> None:
    found = exported("never_called", "onnx", output="a.onnx", data=f"{MODELS}:rows")
    assert found.artefacts[0].verification.rows == 20
    assert left() == ["a.onnx", "a.onnx.export.json"]


@pytest.mark.slow
def test_a_savedmodel_is_exported_again_and_a_keras_file_needs_its_classes() -> None:
    exported("own_layer", "savedmodel", "keras")
    again = exported("./out/savedmodel", "onnx", output="again.onnx")
    assert again.artefacts[0].verification.max_abs <= 1e-4
    with pytest.raises(UsageError, match="needs the class 'Scale'"):
        exported("./out/model.keras", "onnx", output="other.onnx")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        ("x=n.zeros((5,9,9,1),'f4')", r"it has float32\[5,9,9,1\], the model takes float32\[any,8"),
        ("x=n.array([['a']*8]*8)", "does not fit the input 'image'"),
        ("x=n.zeros((5,8,8,1),'f4'),y=n.zeros(4,int)", "inputs and classes have 4 and 5 rows"),
        ("", "holds no inputs"),
        ("x=n.array([object()],object)", "holds Python objects, which are not loaded"),
        ("x=n.zeros((5,8,8,1),'f4'),y=n.zeros((5,3))", "classes that fit an output"),
    ],
)
def test_data_that_does_not_fit_is_told(arrays: str, told: str) -> None:
    code = f"import numpy as n; n.savez('d.npz', {arrays})"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(UsageError, match=told):
        exported("half", "onnx", output="a.onnx", data="d.npz",
                 gates=Gates(max_accuracy_drop_ratio=0.1))  # fmt: skip
    assert left() == ["d.npz"]


@pytest.mark.slow
def test_a_dataset_of_tensorflow_is_judged_whole() -> None:
    found = exported("cnn", "litert-int8", output="a.tflite", data=f"{MODELS}:batches",
                     gates=Gates(max_accuracy_drop_ratio=0.01))  # fmt: skip
    assert found.passed
    assert found.artefacts[0].verification.rows == 397
    assert "256 of the rows" in str(found.artefacts[0].details["calibration"])


@pytest.mark.slow
def test_the_last_model_of_a_training_is_exported() -> None:
    Path("train.py").write_text(
        "import keras, numpy as np\n"
        "model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)], name='small')\n"
        "model.compile('sgd', 'mse')\n"
        "model.fit(np.zeros((8, 4)), np.zeros((8, 2)), epochs=1)\n"
    )
    words = [sys.executable, "-m", "tfdyno", "train", "train.py", "--output", "run", "-q"]
    subprocess.run(words, check=True, capture_output=True)
    found = exported("./run", "savedmodel", "onnx")
    assert found.source.title == "small"
    assert found.passed


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_kill_leaves_nothing_in_place(number: int) -> None:
    words = [sys.executable, "-m", "tfdyno", "export", f"{MODELS}:cnn", "--to", "keras,savedmodel",
             "--output", "out"]  # fmt: skip
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        while started.poll() is None and not list(Path().glob(".out.export-*/made/*")):
            time.sleep(0.01)
        assert started.poll() is None
        started.send_signal(number)
        started.wait(30)
    assert not Path("out").exists()
    if number != signal.SIGKILL:
        assert left() == []
        return
    time.sleep(1.0)  # its child ends by itself, and gives up nothing that is locked
    exported("own_layer", "savedmodel")
    assert left() == ["out"]


@pytest.mark.slow
@pytest.mark.skipif(not TORCH, reason="TFDYNO_TORCH_PYTHON names no interpreter with PyTorch")
def test_pytorch_gives_the_same_digits() -> None:
    found = exported("cnn", "torch", python=TORCH, data=f"{MODELS}:held_out",
                     gates=Gates(max_accuracy_drop_ratio=0.0))  # fmt: skip
    assert found.passed
    assert found.artefacts[0].verification.max_abs <= 1e-4
    names = ["export.json", "model.keras", "state_dict.pt"]
    assert sorted(one.name for one in Path("out").iterdir()) == names


@pytest.mark.slow
@pytest.mark.skipif(bool(LACKING), reason="KerasHub or safetensors is not installed")
def test_a_fine_tune_goes_out_as_hugging_face_has_it_and_stays_away_where_a_gate_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(one for one in sys.path if one))
    found = exported(f"{LANGUAGE}:adapted_gemma", "huggingface", gates=Gates(max_difference=1e-5))
    assert found.passed
    assert sorted(one.name for one in Path("out").iterdir()) == [
        "config.json", "export.json", "model.safetensors", "tokenizer.model",
        "tokenizer_config.json",
    ]  # fmt: skip
    text = export_text(found)
    assert "the adapters of 4 layers are in their weights" in text
    read = all(find_spec(one) for one in ("torch", "transformers"))
    assert ("KerasHub alone read it again" in text) is not read
    lost = exported(f"{LANGUAGE}:adapted_gemma", "huggingface", output="lost",
                    gates=Gates(max_difference=0.0))  # fmt: skip
    assert not lost.passed
    assert left() == ["out"]
