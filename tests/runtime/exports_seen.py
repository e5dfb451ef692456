"""What the parts of an export do, all of it seen in one process with TensorFlow."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from tests.runtime.benches import in_tensorflow
from tests.runtime.once import once

MODELS = Path(__file__).parents[1] / "data" / "models"
CODE = """
import sys, tempfile
from dataclasses import astuple, replace
from pathlib import Path
folder = Path(tempfile.mkdtemp())
sys.path.insert(0, MODELS)
import numpy as np, tensorflow as tf, keras
import exported
from tfdyno.core.base.errors import TfdynoError
from tfdyno.core.messages.export import Export, SourceModel, Target
from tfdyno.core.messages.wire import fields_of
from tfdyno.runtime.export import check as export_check, data as export_data
from tfdyno.runtime.export import child as export_model, source as export_source
from tfdyno.runtime.export import write as export_write
from tfdyno.runtime.export import signature as export_signature, verify as verify_export

result = {}

def told(call, *arguments, **named):
    try:
        call(*arguments, **named)
    except TfdynoError as error:
        return str(error)
    return ""

def ask(name, **fields):
    return SourceModel(reference=f"{MODELS}/exported.py:{name}", kind="function", **fields)

def file(name, kind="keras_file"):
    return SourceModel(reference=name, kind=kind, path=str(folder / name))

def words(spec):
    return f"{spec.name} {spec.dtype.name}{spec.shape}"

# source
load = export_source.load
several = load(ask("several"), None)
result["several"] = [[words(s) for s in several.specs], sorted(several.outputs)]
result["spec"] = words(export_signature.spec_of(" image=uint8[batch,28,28,1] "))
result["spec_scalar"] = words(export_signature.spec_of("text=string[batch]"))
result["bad_specs"] = [told(export_signature.spec_of, one)
                       for one in ("image", "image=uint7[2]", "1=float32[2]")]
result["never"] = told(load, ask("never_called"), None)
built = load(ask("never_called"), {"": exported.rows()[:1]})
result["built"] = words(built.specs[0])
result["unknown_input"] = told(load, ask("own_layer", signature=("x=float32[batch,4]",)), None)
result["wrong_shape"] = told(load, ask("own_layer", signature=("row=float32[batch,5]",)), None)
own = load(ask("own_layer"), None)
result["weights"] = [export_source.weights_bytes(own), len(export_source.weights_sha256(own.model))]
result["dtypes"] = [export_source.compute_dtypes(exported.half()),
                    export_source.compute_dtypes(exported.own_layer())]
own.model.save(folder / "own.keras")
known = dict(keras.saving.get_custom_objects())
keras.saving.get_custom_objects().clear()
result["lacks"] = told(load, file("own.keras"), None)
keras.saving.get_custom_objects().update(known)
exported.with_lambda().save(folder / "lambda.keras")
result["lambda"] = told(load, file("lambda.keras"), None)
tf.saved_model.save(tf.Module(), str(folder / "bare"))
result["bare"] = told(load, file("bare", "savedmodel"), None)

# check
text = load(ask("text"), None)
result["obstacles"] = [[astuple(one) for one in found] for found in [
    export_check.check(text, ["onnx"], {}),
    export_check.check(text, ["torch"], {"torch": {"layer": ["StringLookup"]}}),
    export_check.check(text, ["tensorrt"], {"tensorrt": {"dtype": ["string"]}})[-1:],
    export_check.check(several, ["onnx", "savedmodel", "keras"], {}),
]]

# data
specs = (tf.TensorSpec((None, 4), tf.float32, name="row"),)
fit = lambda x, y=None, t=None: export_data.fitted((x, y, t), specs, ("a",), "d.npz")
found = fit(np.zeros((300, 4), "u1"), np.zeros(300, int), np.ones((400, 4)))
result["fitted"] = [found.rows, str(found.inputs["row"].dtype), found.words,
                    found.calibration_words, float(found.calibration["row"].max())]
result["own_calibration"] = fit(np.zeros((5, 4))).calibration_words
result["misfits"] = [told(fit, *one) for one in (
    (np.zeros((5, 3)),), (np.array([["a"] * 4]),), (np.zeros((5, 4)), np.zeros(4)),
    ({"x": np.zeros((5, 4))},), (np.zeros((5, 4)), {"b": np.zeros(5)}), (np.zeros((0, 4)),))]
first, second = export_data.random(specs, {}), export_data.random(specs, {})
result["random"] = [first.rows, bool(np.all(first.inputs["row"] == second.inputs["row"]))]
numbers = (tf.TensorSpec((None, None), tf.int32, name="n"),)
drawn = export_data.random(numbers, {"n": 5}).inputs["n"]
result["numbers"] = [list(drawn.shape), int(drawn.min()) >= 0, int(drawn.max()) < 5]
np.savez(folder / "two.npz", x_a=np.zeros(3), x_b=np.zeros(3), y=np.zeros(3), x_train=np.ones(2))
x, y, training = export_data.read(str(folder / "two.npz"))
result["file"] = [sorted(x), y is not None, training is not None]
x, y, _ = export_data.read(f"{MODELS}/exported.py:batches")
result["dataset"] = [list(x.shape), list(y.shape)]
result["batches"] = [[at, len(part["row"])] for at, part in fit(np.zeros((5, 4))).batches(2)]

# write and verify
small = load(ask("half"), None)
data = export_data.random(small.specs, {})
kept = {}
for kind, name in (("savedmodel", "s"), ("onnx", "m.onnx"), ("torch", "t")):
    kept[kind] = export_write.write(small, kind, folder / name, data)
result["onnx"] = [kept["onnx"]["opset"] >= 13, kept["onnx"]["operations"].get("Conv")]
result["torch_folder"] = [one.name for one in (folder / "t").iterdir()]
result["texts"] = export_write.texts_of({"a": np.float32(1.5), "b": (np.int64(2), "x")})
before = verify_export.original(small)
after = verify_export.exported("onnx", folder / "m.onnx", small)
differences, accuracy = verify_export.compare(small, before, after, data)
result["compared"] = [differences[0].max_abs < 4 / 1024, accuracy,
                      differences[0].top1_ratio > 0.95]  # two classes may be a spacing apart
timed = verify_export.latencies(small, before, after, data)
result["timed"] = [[one.batch_size, one.rounds >= 5, one.original_s.best > 0,
                    one.speedup_ratio.low <= one.speedup_ratio.best] for one in timed]
(folder / "broken.onnx").write_bytes(b"no model")
result["broken"] = told(verify_export.exported, "onnx", folder / "broken.onnx", small)
one_hot = export_data.Data(inputs=data.inputs, classes={"": np.eye(10)[[3] * 64]}, words="",
                           calibration={}, calibration_words="")
output, truth = verify_export.judged(small, one_hot)
result["judged"] = [output, sorted(set(truth.tolist()))]
amounts = export_data.Data(inputs=data.inputs, classes={"": np.full((64, 10), 2.5)}, words="",
                           calibration={}, calibration_words="")
output, _ = verify_export.judged(small, amounts)
result["amounts"] = [output, verify_export.amounts(small, amounts, output),
                     verify_export.amounts(small, one_hot, next(iter(small.outputs)))]
inputs = keras.Input((4,), name="row")
both = {"embedding": keras.layers.Dense(16)(inputs), "logits": keras.layers.Dense(3)(inputs)}
keras.Model(inputs, both).save(folder / "both.keras")
both = load(file("both.keras"), None)
labels = lambda name: export_data.Data(
    inputs={"row": np.zeros((6, 4), "f4")}, classes={name: np.arange(6) % 3}, words="",
    calibration={}, calibration_words="")
result["fits_two"] = told(verify_export.judged, both, labels(""))
result["fits_named"] = verify_export.judged(both, labels("logits"))[0]
lengths = lambda y: verify_export._truth(np.array(y), tf.TensorSpec((None,), tf.int64))
result["whole"] = [lengths([1.0, 2.0]).tolist(), lengths([1.5, 2.0])]
result["needed"] = told(verify_export.check_classes, small, amounts, "d.npz", needed=True)
fixed = load(ask("own_layer", signature=("row=float32[4,4]",)), None)
rows = fit(np.random.default_rng(0).random((6, 4), "f4"))
export_write.write(fixed, "savedmodel", folder / "fixed", rows)
differences, _ = verify_export.compare(
    fixed, verify_export.original(fixed), verify_export.exported("savedmodel", folder / "fixed",
                                                                 fixed), rows)
result["fixed"] = [differences[0].max_abs, verify_export.fixed_batch(fixed)]

# model
request = Export(model=ask("own_layer"), data="", refused={}, needs_classes=False, measure=False,
                 targets=(Target(format="keras", path=folder / "again.keras"),), kept=folder)
handled = export_model.handle(request, lambda _stage: None).outcome
result["handled"] = [handled.source.parameter_count,
                     handled.made[0].verification.differences[0].max_abs]
refused = replace(request, model=ask("text"), targets=(Target(format="onnx", path=Path()),))
result["refused"] = [one.layer for one in export_model.handle(refused, print).outcome.obstacles]
rows = folder / "rows"
rows.mkdir()
result["for_torch"] = [fields_of(export_model._keep_for_torch(small, before, one_hot, rows)),
                       sorted(one.name for one in rows.iterdir())]
"""


@functools.cache
def facts() -> dict[str, Any]:
    """What was seen, by name."""
    code = f"MODELS = {str(MODELS)!r}\n{CODE}"
    found: dict[str, Any] = once("exports", lambda: in_tensorflow(code))
    return found
