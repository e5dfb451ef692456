"""Models loaded as the server loads them, in the serving environment."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.served import KERAS, LINEAR, run_serving, small_models

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.tf, pytest.mark.slow]
ODD = """
import sys
import tensorflow as tf

def saved(name, call, spec):
    module = tf.Module()
    module.call = tf.function(call, input_signature=[spec])
    tf.saved_model.save(module, sys.argv[1] + "/" + name, signatures=module.call)

x = tf.TensorSpec([None, 3], tf.float32, name="x")
saved("single", lambda x: {"y": tf.reduce_sum(x)}, x)
saved("rankless", lambda x: {"y": x * 2}, tf.TensorSpec(None, tf.float32, name="x"))
saved("python", lambda x: {"y": tf.py_function(lambda a: a, [x], tf.float32)}, x)
saved("words", lambda t: {"n": tf.strings.length(t)}, tf.TensorSpec([None], tf.string, name="t"))
saved("half", lambda x: {"y": tf.cast(x, tf.bfloat16) * 2}, x)
saved("wide", lambda x: {"y": x[:, 30]}, tf.TensorSpec([None, None], tf.float32, name="x"))
"""
LOOK = """
import json, sys, tempfile
from pathlib import Path
import numpy as np
from tfdyno.core.base.errors import UsageError
from tfdyno.serving.model import saved as serve_model
from tfdyno.serving.model.rows import mixes_rows

found = {}
for path in sorted(Path(sys.argv[1]).iterdir()):
    path = path / "1" if path.name == "linear" else path
    with tempfile.TemporaryDirectory() as scratch:
        try:
            loaded = serve_model.load(path, Path(scratch))
            one = serve_model.check_sizes(loaded["serving_default"])
            free, why = serve_model.fitting_free_size(one)
            mixed = one.unbatched or mixes_rows(one, free)
            row = {"names": sorted(loaded),
                   "inputs": [[t.name, t.dtype, t.shape] for t in one.inputs],
                   "outputs": [[t.name, t.dtype, t.shape] for t in one.outputs],
                   "free": free, "unbatched": mixed, "is_short": one.is_short}
            if path.name in ("1", "ones.keras"):
                answer = one.call({"x": np.array([[1, 2, 3]], np.float32)})
                row["answer"] = {key: value.tolist() for key, value in answer.items()}
                row["seconds"] = serve_model.latency_s(one, free, 2)
        except UsageError as error:
            row = {"error": str(error).replace(sys.argv[1], "")}
    found[path.parent.name if path.name == "1" else path.name] = row
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("models")
    for source in (LINEAR, KERAS, ODD):
        small_models(folder, source)
    (folder / "damaged.keras").write_bytes(b"PK no zip")
    damaged: Path = folder / "damaged"
    damaged.mkdir()
    (damaged / "saved_model.pb").write_bytes(b"no graph")
    done = run_serving(LOOK, str(folder))
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_a_saved_model_is_called_by_its_signature(found: dict[str, Any]) -> None:
    row = found["linear"]
    assert row["inputs"] == [["x", "float32", [None, 3]]]
    assert row["outputs"] == [["y", "float32", [None, 2]]]
    assert row["answer"] == {"y": [[4.0, 7.0]]}  # [1, 2, 3] @ [[1, 0], [0, 2], [1, 1]]
    assert row["seconds"] > 0.0


def test_a_keras_file_is_called_as_keras_exports_it(found: dict[str, Any]) -> None:
    row = found["ones.keras"]
    assert row["names"] == ["serve", "serving_default"]
    assert row["answer"] == {"output_0": [[6.0, 6.0]]}


def test_why_samples_cannot_be_put_together_is_said(found: dict[str, Any]) -> None:
    assert found["linear"]["unbatched"] == ""
    assert found["fixed"]["unbatched"] == "x is fixed to a batch of 2"
    assert found["mean"]["unbatched"] == "y does not have one row per sample"


def test_strings_and_bfloat16_have_names_that_numpy_knows(found: dict[str, Any]) -> None:
    assert found["words"]["inputs"] == [["t", "bytes", [None]]]
    assert found["half"]["outputs"] == [["y", "float32", [None, 3]]]
    assert (found["half"]["is_short"], found["linear"]["is_short"]) == (True, False)


def test_open_sizes_are_tried_until_one_fits(found: dict[str, Any]) -> None:
    assert found["linear"]["free"] == 1
    assert found["wide"]["free"] == 32  # the model takes the 31st of each row


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nameless", "has no signature"),
        ("lambda.keras", "holds a lambda"),
        ("own.keras", "needs Own, which is not here"),
        ("damaged.keras", "is not a Keras 3 model file, or is damaged"),
        ("damaged", "cannot be loaded"),
        ("single", "y of the signature serving_default is a single number"),
        ("rankless", "does not say the shape of its input x"),
        ("python", "calls Python"),
    ],
)
def test_what_cannot_be_served_is_refused_in_one_sentence(
    name: str, expected: str, found: dict[str, Any]
) -> None:
    assert expected in found[name]["error"]
    assert "\n" not in found[name]["error"]
