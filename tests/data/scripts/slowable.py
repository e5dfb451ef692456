"""A small convolutional network whose step sleeps for a share of its own time.

``TFDYNO_PROOF_SLEEP_RATIO``: that share, 0 without it. The layer is there either way, so that
nothing but the sleep differs. ``scripts/prove_bench`` measures it.
"""

import os
import time
from collections import deque
from statistics import median

import keras
import numpy as np
import tensorflow as tf
from keras import layers

SLEEP_RATIO = float(os.environ.get("TFDYNO_PROOF_SLEEP_RATIO", "0"))
COARSE_S = 0.0002
"""A sleep ends later than it was asked to: it is asked for this much less, the rest is waited."""
BATCH = 64


class Slept:
    """The same pictures, later."""

    def __init__(self) -> None:
        """No step has been seen yet."""
        self.seconds: deque[float] = deque(maxlen=15)
        self.ended_s = 0.0

    def __call__(self, pictures: np.ndarray) -> np.ndarray:
        """Sleep for a share of the median time from the end of a sleep to the next."""
        began_s = now_s = time.perf_counter()
        if self.ended_s:
            self.seconds.append(began_s - self.ended_s)
            until_s = began_s + SLEEP_RATIO * median(self.seconds)
            time.sleep(max(0.0, until_s - began_s - COARSE_S))
            while now_s < until_s:
                now_s = time.perf_counter()
        self.ended_s = now_s
        return pictures


class Sleep(layers.Layer):  # type: ignore[misc]
    """Hands its input on after its sleep; what follows has to wait for it."""

    def __init__(self) -> None:
        """Count from here on."""
        super().__init__()
        self.slept = Slept()

    def call(self, pictures: tf.Tensor) -> tf.Tensor:
        """The input itself."""
        passed = tf.numpy_function(self.slept, [pictures], tf.float32, stateful=True)
        return tf.ensure_shape(passed, pictures.shape)


numbers = np.random.default_rng(0)
pictures = numbers.random((20 * BATCH, 32, 32, 3), dtype="float32")
labels = numbers.integers(0, 10, size=len(pictures))
model = keras.Sequential(
    [
        keras.Input((32, 32, 3)),
        Sleep(),
        layers.Conv2D(32, 3, padding="same", activation="relu"),
        layers.Conv2D(48, 3, padding="same", strides=2, activation="relu"),
        layers.Conv2D(64, 3, padding="same", strides=2, activation="relu"),
        layers.GlobalAveragePooling2D(),
        layers.Dense(10),
    ],
    name="slowable",
)
model.compile(
    optimizer=keras.optimizers.SGD(0.01),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    jit_compile=False,
)

if __name__ == "__main__":
    model.fit(pictures, labels, batch_size=BATCH, epochs=2)
