"""The first step of a training in a process of its own, and XLA's part of it.

``KERAS_BACKEND=… python -m benchmarks.compiling transformer|resnet50``; prints JSON.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

BATCH = 16
STARTS = re.compile(r"xla_compiler\.cc:\d+\] =+$")
ENDS = re.compile(r"device_compilation_profiler\.cc:\d+\] Compiled ")
"""TensorFlow's own lines: its graph is in XLA's form, and the program is there to be run."""
TELL = {
    "TF_CPP_MIN_LOG_LEVEL": "0",
    "TF_CPP_VMODULE": "xla_compiler=1,device_compilation_profiler=1",
}
REQUEST = "/jax/compilation_cache/compile_requests_use_cache"
DONE = "/backend_compile_duration"
"""JAX's own events, before and after a program is compiled or loaded."""


class Spent:
    """What XLA took, on the clock and of all CPUs: the second is the same on a busy machine."""

    def __init__(self, clocks: Callable[[], tuple[float, float]]) -> None:
        self._clocks, self._began = clocks, clocks()
        self.clock_s = self.cpu_s = 0.0

    def begin(self) -> None:
        """XLA begins; a second call before the end counts anew."""
        self._began = self._clocks()

    def end(self) -> None:
        """XLA has ended."""
        clock_s, cpu_s = self._clocks()
        self.clock_s += clock_s - self._began[0]
        self.cpu_s += cpu_s - self._began[1]

    def line(self, line: str) -> None:
        """Hear a line of TensorFlow's log, as soon as it is written."""
        if STARTS.search(line):
            self.begin()
        elif ENDS.search(line):
            self.end()


def clocks() -> tuple[float, float]:
    """Seconds on the clock, and of CPU in all threads of this process."""
    return time.perf_counter(), time.process_time()


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
    spent = Spent(clocks)
    if os.environ["KERAS_BACKEND"] == "jax":
        _hear_jax(spent)
    else:
        os.environ.update(TELL)
        _hear_log(spent)
    import keras

    keras.utils.set_random_seed(0)
    model, x, y = {"transformer": transformer, "resnet50": resnet50}[name]()
    model.compile("adam", "sparse_categorical_crossentropy", jit_compile=True)
    began = clocks()
    losses = model.fit(x, y, batch_size=BATCH, epochs=1, verbose=0).history["loss"]
    first_s, cpu_s = (now - then for now, then in zip(clocks(), began, strict=True))
    losses += model.fit(x, y, batch_size=BATCH, epochs=2, verbose=0).history["loss"]
    found = {"first_s": first_s, "first_cpu_s": cpu_s, "losses": losses,
             "xla_s": spent.clock_s, "xla_cpu_s": spent.cpu_s}  # fmt: skip
    print(json.dumps(found))


def _hear_log(spent: Spent) -> None:
    """Read what TensorFlow writes to standard error from now on."""
    read, write = os.pipe()
    os.dup2(write, 2)

    def follow() -> None:
        with os.fdopen(read, errors="replace") as lines:
            for line in lines:
                spent.line(line.rstrip())

    threading.Thread(target=follow, daemon=True).start()


def _hear_jax(spent: Spent) -> None:
    """Listen to JAX's own events from now on."""
    import jax

    jax.monitoring.register_event_listener(
        lambda event, **_about: spent.begin() if event == REQUEST else None
    )
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, _seconds_s, **_about: spent.end() if event.endswith(DONE) else None
    )


if __name__ == "__main__":
    main(sys.argv[1])
