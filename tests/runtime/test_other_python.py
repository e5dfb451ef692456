"""``--python``: the user's own interpreter, an older TensorFlow, and nothing of tfdyno's in it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tfdyno
from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.choose.trace import Traced, trace

PACKAGE = Path(tfdyno.__file__).parent
IN_THE_USERS_PYTHON = [
    *("__init__", "core/base/errors", "core/base/version", "core/choose/workload"),
    *(f"process/{name}" for name in ("child", "environment", "failure")),
    *(f"runtime/workload/{name}" for name in ("batch", "capture", "capture_loop", "dataspec")),
    *(f"runtime/workload/{name}" for name in ("kerasfile", "loop_step", "standins")),
    *(f"runtime/workload/{name}" for name in ("workloads",)),
    *(f"runtime/trace/{name}" for name in ("child", "export_tensorflow", "marker")),
    *(f"runtime/base/{name}" for name in ("keras2", "keras_internals", "replaced")),
    *("runtime/base/tensorflow_internals", "runtime/trace/step_tensorflow"),
]
THEIR_OWN = {"keras", "numpy", "tensorflow", "tf_keras", "tfdyno"}
SCRIPT = """
import numpy as np
import tensorflow as tf
from tensorflow import keras

def build():
    layers = [
        keras.layers.Conv2D(8, 3, activation="relu"),
        keras.layers.BatchNormalization(),
        keras.layers.Flatten(),
        keras.layers.Dense(10, activation="softmax"),
    ]
    model = keras.Sequential([keras.Input((32, 32, 3)), *layers])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model

def embedded():
    tokens = keras.Input((20,), dtype="int32")
    x = keras.layers.LSTM(32)(keras.layers.Embedding(100, 16, mask_zero=True)(tokens))
    model = keras.Model(tokens, keras.layers.Dense(2)(x))
    model.compile("rmsprop", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model

if __name__ == "__main__":
    x, y = np.zeros((64, 32, 32, 3), "float32"), np.zeros((64,), "int32")
    data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(64).batch(16).prefetch(2)
    build().fit(data, epochs=3)
"""
# By hand, per sample: the convolution without a gradient for the images, the dense layer with.
CNN_FLOPS = 2 * (2 * 30 * 30 * 8 * 27) + 3 * (2 * 30 * 30 * 8 * 10)
LSTM_FLOPS = 3 * 2 * (20 * (16 + 32) * 4 * 32 + 32 * 2)


@pytest.mark.parametrize("name", IN_THE_USERS_PYTHON)
def test_what_runs_there_is_python_3_10_and_imports_the_standard_library(name: str) -> None:
    tree = ast.parse((PACKAGE / f"{name}.py").read_text(), feature_version=(3, 10))
    imported = set()
    for statement in tree.body:  # what a function imports, it imports where it can
        if isinstance(statement, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in statement.names}
        if isinstance(statement, ast.ImportFrom):
            imported.add((statement.module or "").partition(".")[0])
    assert imported <= set(sys.stdlib_module_names) | THEIR_OWN


def fake(tmp_path: Path, text: str) -> str:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return str(program)


def test_an_old_interpreter_is_refused_by_its_version(tmp_path: Path) -> None:
    workload = parse_reference("keras:ResNet50", python=fake(tmp_path, "echo 3.8"))
    with pytest.raises(UsageError, match=r"is Python 3\.8: tfdyno needs 3\.10 or newer"):
        trace(workload)


def test_a_program_that_is_no_interpreter_is_refused(tmp_path: Path) -> None:
    workload = parse_reference("keras:ResNet50", python=fake(tmp_path, "echo hello"))
    with pytest.raises(UsageError, match="is not a Python interpreter"):
        trace(workload)


def test_a_tensorflow_before_2_9_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tensorflow").mkdir()
    (tmp_path / "tensorflow" / "__init__.py").write_text("__version__ = '2.8.4'\n")
    (tmp_path / "train.py").write_text("def step(x):\n    return x\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    spec = ("float32[batch,3]",)
    with pytest.raises(UsageError, match=r"TensorFlow 2\.8\.4 is too old; use 2\.9 or newer"):
        trace(parse_reference(f"{tmp_path / 'train.py'}:step", input_spec=spec))


@pytest.fixture(scope="module", params=["2.15.1", "2.16.2"])
def other_python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An environment with nothing but this TensorFlow and what it brings."""
    folder = tmp_path_factory.mktemp("environment")
    python = str(folder / "bin" / "python")
    wanted = f"tensorflow-cpu=={request.param}"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=300)
    install = [python, "-m", "pip", "install", "--quiet", "--no-compile", wanted]
    done = subprocess.run(install, capture_output=True, text=True, timeout=900)
    if done.returncode:
        pytest.skip(f"pip cannot install {wanted}: {done.stderr.strip().splitlines()[-1]}")
    return python


def traced(folder: Path, python: str, name: str = "") -> Traced:
    script = folder / "train.py"
    script.write_text(SCRIPT)
    reference = f"{script}:{name}" if name else str(script)
    return trace(parse_reference(reference, python=python))


def library_flops(made: Traced) -> float:
    library = [k for k in made.program.kernels if k.kind in ("convolution", "gemm")]
    return sum(kernel.flops.per_sample for kernel in library)


@pytest.mark.slow
@pytest.mark.tf
def test_a_plain_script_is_traced_by_the_users_own_tensorflow(
    tmp_path: Path, other_python: str
) -> None:
    made = traced(tmp_path, other_python)
    assert made.trace.path == "tensorflow"
    assert "JAX backend: " in made.trace.path_reason
    assert (made.trace.script_batch_size, made.trace.samples_per_epoch) == (16, 64)
    assert (made.trace.marker, made.trace.epochs) == (37, 3)
    assert library_flops(made) == CNN_FLOPS
    assert made.trace.trainable_parameter_count == 8 * 28 + 16 + 7201 * 10


@pytest.mark.slow
@pytest.mark.tf
def test_a_function_with_a_recurrent_layer_counts_the_same(
    tmp_path: Path, other_python: str
) -> None:
    made = traced(tmp_path, other_python, "embedded")
    assert library_flops(made) == pytest.approx(LSTM_FLOPS, rel=0.01)
    assert made.trace.trainable_parameter_count == 100 * 16 + (16 + 32 + 1) * 4 * 32 + 33 * 2
