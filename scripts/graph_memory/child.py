"""Runs one step of a model in TensorFlow's graph mode under the profiler; started by measure.py.

    python -m graph_memory.child MODEL MODE POLICY BATCH PROFILE_FOLDER

Prints the peaks and versions as one line of JSON.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graph_memory.events import is_scratch, memory_events, spans, tensors
from graph_memory.peaks import Peaks, peaks

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Model, Tensor, Value

LIMIT_MB = 12000
ENVIRONMENT = {
    "KERAS_BACKEND": "tensorflow",
    "CUDA_VISIBLE_DEVICES": "-1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "TF_CPU_ALLOCATOR_USE_BFC": "true",
    "TF_CPU_BFC_MEM_LIMIT_IN_MB": str(LIMIT_MB),
    # oneDNN's kernels change layouts and hold scratch room as no GPU does.
    "TF_ENABLE_ONEDNN_OPTS": "0",
}
ZOO = Path(__file__).parents[2] / "truth" / "own" / "graph_memory_zoo.py"
MARK = "graph_memory_step"
"""Name of the event around a measured step."""
WARM_STEPS = 2
MEASURED_STEPS = 3
"""The executor's threads race, so no two steps are quite alike: the median one is told."""


def main(model: str, mode: str, policy: str, batch: str, folder: str) -> None:
    """Profile the process from its first tensor on; the last steps are the measured ones."""
    os.environ.update(ENVIRONMENT)
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(1)
    keras.config.set_dtype_policy(policy)
    tf.profiler.experimental.start(folder)
    built = _builder(model)()
    built.jit_compile = False
    x, y = _batch(built, int(batch))
    run = _train_step(built, x, y) if mode == "train" else _predict_step(built, x)
    for _ in range(WARM_STEPS):
        run()
    for _ in range(MEASURED_STEPS):
        with tf.profiler.experimental.Trace(MARK):
            run()
    tf.profiler.experimental.stop()
    versions = {"tensorflow": tf.__version__, "keras": keras.__version__}
    print(json.dumps({**dataclasses.asdict(_peaks(Path(folder))), **versions}))


def _builder(name: str) -> Value:
    spec = importlib.util.spec_from_file_location(ZOO.stem, ZOO)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def _batch(model: Model, size: int) -> tuple[Any, Any]:
    """Inputs and targets that lie in the allocator's memory, as a copy to a GPU would."""
    import tensorflow as tf

    def tensor(symbolic: Value) -> Value:
        shape = (size, *symbolic.shape[1:])
        if symbolic.dtype.startswith("int"):
            return tf.random.uniform(shape, maxval=2, dtype=tf.int32)
        return tf.random.uniform(shape)

    x = [tensor(each) for each in model.inputs]
    losses = model.loss if isinstance(model.loss, list) else [model.loss]
    y = []
    for each, loss in zip(model.outputs, losses, strict=True):
        sparse = "sparse" in str(getattr(loss, "name", loss))
        shape = (size, *each.shape[1 : -1 if sparse else None])
        kind = tf.int32 if sparse else tf.float32
        y.append(tf.random.uniform(shape, maxval=2 if sparse else 1, dtype=kind))
    return x if len(x) > 1 else x[0], y if len(y) > 1 else y[0]


def _train_step(model: Model, x: Tensor, y: Tensor) -> Value:
    return lambda: model.train_on_batch(x, y)


def _predict_step(model: Model, x: Tensor) -> Value:
    return lambda: model.predict_on_batch(x)


def _peaks(folder: Path) -> Peaks:
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    (path,) = folder.rglob("*.xplane.pb")
    space = xplane_pb2.XSpace()
    space.ParseFromString(path.read_bytes())
    timed = spans(space)
    found = tensors(memory_events(space))
    scratch = is_scratch(found, timed)
    steps = [span for span in timed if span.name == MARK]
    each = [peaks(found, scratch, span.start_ps, span.end_ps) for span in steps]
    return sorted(each, key=lambda step: step.tensor_peak_bytes)[len(each) // 2]


if __name__ == "__main__":
    main(*sys.argv[1:])
