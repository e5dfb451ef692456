"""The first step of a training in a process of its own, and XLA's part of it.

``KERAS_BACKEND=… python -m benchmarks.compiling transformer|resnet50``; prints JSON.
"""

from __future__ import annotations

import bisect
import json
import os
import re
import sys
import tempfile
import threading
import time
from typing import Any

BATCH = 16
STARTS = re.compile(r"I\d+ [\d:]*:(\d+\.\d+) .*xla_compiler\.cc:\d+\] =+$")
ENDS = re.compile(r"I\d+ [\d:]*:(\d+\.\d+) .*device_compilation_profiler\.cc:\d+\] Compiled ")
"""TensorFlow's own lines: its graph is in XLA's form, and the program is there to be run."""
TELL = {
    "TF_CPP_MIN_LOG_LEVEL": "0",
    "TF_CPP_VMODULE": "xla_compiler=1,device_compilation_profiler=1",
}
REQUEST = "/jax/compilation_cache/compile_requests_use_cache"
DONE = "/backend_compile_duration"
"""JAX's own events, before and after a program is compiled or loaded."""
SAMPLE_S = 0.01
Span = tuple[float, float]
"""Seconds since 1970: XLA began, and it ended."""


def spans(lines: list[str]) -> list[Span]:
    """When XLA compiled, or loaded, by TensorFlow's log."""
    began_s, found = 0.0, []
    for line in lines:
        if start := STARTS.match(line):
            began_s = float(start[1])
        elif end := ENDS.match(line):
            found.append((began_s, float(end[1])))
    return found


def cpu_between(samples: list[tuple[float, float]], span: Span) -> float:
    """CPU seconds within a span, between the samples next to its ends.

    Args:
        samples: Seconds since 1970 with the CPU seconds of this process until then.
        span: Within them.
    """
    first, last = (bisect.bisect_left(samples, (at_s, 0.0)) for at_s in span)
    return samples[min(last, len(samples) - 1)][1] - samples[max(0, first - 1)][1]


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
    is_jax, samples, found = os.environ["KERAS_BACKEND"] == "jax", list[Span](), list[Span]()
    threading.Thread(target=_sample, args=(samples,), daemon=True).start()
    with tempfile.TemporaryFile("w+") as said:
        if is_jax:
            _hear_jax(found)
        else:  # into a file: a pipe that nobody reads in time would stop TensorFlow
            os.environ.update(TELL)
            os.dup2(said.fileno(), 2)
        import keras

        keras.utils.set_random_seed(0)
        model, x, y = {"transformer": transformer, "resnet50": resnet50}[name]()
        model.compile("adam", "sparse_categorical_crossentropy", jit_compile=True)
        began_s, began_cpu_s = time.time(), time.process_time()
        losses = model.fit(x, y, batch_size=BATCH, epochs=1, verbose=0).history["loss"]
        first_s, first_cpu_s = time.time() - began_s, time.process_time() - began_cpu_s
        losses += model.fit(x, y, batch_size=BATCH, epochs=2, verbose=0).history["loss"]
        said.seek(0)
        found += spans(said.read().splitlines())
    told = {"first_s": first_s, "first_cpu_s": first_cpu_s, "losses": losses,
            "xla_s": sum(end - begin for begin, end in found),
            "xla_cpu_s": sum(cpu_between(samples, one) for one in found)}  # fmt: skip
    print(json.dumps(told))


def _sample(samples: list[Span]) -> None:
    """Note the CPU time of this process all the time."""
    while True:
        samples.append((time.time(), time.process_time()))
        time.sleep(SAMPLE_S)


def _hear_jax(found: list[Span]) -> None:
    """Listen to JAX's own events from now on."""
    import jax

    begun = [0.0]

    def hear(event: str, **_about: object) -> None:
        if event == REQUEST:
            begun[0] = time.time()

    def end(event: str, _seconds_s: float, **_about: object) -> None:
        if event.endswith(DONE):
            found.append((begun[0], time.time()))

    jax.monitoring.register_event_listener(hear)
    jax.monitoring.register_event_duration_secs_listener(end)


if __name__ == "__main__":
    main(sys.argv[1])
