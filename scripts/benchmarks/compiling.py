"""The first step of a training in a process of its own, and XLA's part of it.

``KERAS_BACKEND=… python -m benchmarks.compiling transformer|resnet50``; prints JSON.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from typing import Any

BATCH = 16
STARTS = re.compile(r"^I\d+ [\d:]*:(\d+\.\d+) .*xla_compiler\.cc:\d+\] =+$")
ENDS = re.compile(r"^I\d+ [\d:]*:(\d+\.\d+) .*device_compilation_profiler\.cc:\d+\] Compiled ")
"""TensorFlow's own lines: its graph is in XLA's form, and the program is there to be run."""
TELL = {
    "TF_CPP_MIN_LOG_LEVEL": "0",
    "TF_CPP_VMODULE": "xla_compiler=1,device_compilation_profiler=1",
}


def xla_s(lines: list[str]) -> float:
    """Seconds in which XLA compiled, or loaded, by TensorFlow's log."""
    began_s, spent_s = 0.0, 0.0
    for line in lines:
        if found := STARTS.match(line):
            began_s = float(found[1])
        elif found := ENDS.match(line):
            spent_s += float(found[1]) - began_s
    return spent_s


def transformer() -> tuple[Any, Any, Any]:
    """Six blocks, 1.3 million weights, with a batch of tokens."""
    import keras
    import numpy as np
    from keras import layers

    x = inputs = keras.Input((64,), dtype="int32")
    x = layers.Embedding(1000, 128)(x)
    for _ in range(6):
        y = layers.LayerNormalization()(x)
        x = layers.Add()([x, layers.MultiHeadAttention(4, 32)(y, y)])
        y = layers.Dense(512, "gelu")(layers.LayerNormalization()(x))
        x = layers.Add()([x, layers.Dense(128)(y)])
    outputs = layers.Dense(10, "softmax")(layers.GlobalAveragePooling1D()(x))
    random = np.random.default_rng(0)
    tokens, classes = random.integers(0, 1000, (BATCH, 64)), random.integers(0, 10, BATCH)
    return keras.Model(inputs, outputs), tokens, classes


def resnet50() -> tuple[Any, Any, Any]:
    """Keras' own, on small images."""
    import keras
    import numpy as np

    random = np.random.default_rng(0)
    model = keras.applications.ResNet50(weights=None, input_shape=(64, 64, 3), classes=10)
    images = random.random((BATCH, 64, 64, 3), "float32")
    return model, images, random.integers(0, 10, BATCH)


def main(name: str) -> None:
    """Train one step and tell what it took."""
    is_jax = os.environ["KERAS_BACKEND"] == "jax"
    os.environ.update({} if is_jax else TELL)
    with tempfile.TemporaryFile("w+") as said:
        kept = os.dup(2)
        os.dup2(said.fileno(), 2)
        spent = _heard() if is_jax else []
        import keras

        keras.utils.set_random_seed(0)
        model, x, y = {"transformer": transformer, "resnet50": resnet50}[name]()
        model.compile("adam", "sparse_categorical_crossentropy", jit_compile=True)
        began_s, began_cpu_s = time.perf_counter(), time.process_time()
        losses = model.fit(x, y, batch_size=BATCH, epochs=1, verbose=0).history["loss"]
        first_s = time.perf_counter() - began_s
        cpu_s = time.process_time() - began_cpu_s
        losses += model.fit(x, y, batch_size=BATCH, epochs=2, verbose=0).history["loss"]
        os.dup2(kept, 2)
        said.seek(0)
        told = xla_s(said.read().splitlines())
    found = {"first_s": first_s, "cpu_s": cpu_s, "xla_s": sum(spent) or told, "losses": losses}
    print(json.dumps(found))


def _heard() -> list[float]:
    """Seconds of each program that JAX has compiled, or taken from its cache, from now on."""
    import jax

    spent: list[float] = []

    def hear(event: str, seconds_s: float, **_about: object) -> None:
        if event.endswith("/backend_compile_duration"):
            spent.append(seconds_s)

    jax.monitoring.register_event_duration_secs_listener(hear)
    return spent


if __name__ == "__main__":
    main(sys.argv[1])
