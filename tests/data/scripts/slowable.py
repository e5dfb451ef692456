"""A small convolutional network whose step sleeps as long as the environment says.

``TFDYNO_PROOF_SLEEP_S``: seconds, 0 without it. The layer is there either way, so that nothing but
the sleep differs. ``TFDYNO_PROOF_SEED``: it sleeps only where Python's random numbers were seeded
with this, so that two recipes in turns can differ. ``scripts/prove_bench`` measures it.
"""

import os
import random
import time

import keras
import numpy as np
import tensorflow as tf
from keras import layers

SEED = os.environ.get("TFDYNO_PROOF_SEED", "")
MEANT = not SEED or random.getstate() == random.Random(int(SEED)).getstate()
SLEEP_S = float(os.environ.get("TFDYNO_PROOF_SLEEP_S", "0")) if MEANT else 0.0
BATCH = 64


def slept(pictures: np.ndarray) -> np.ndarray:
    """The same pictures, later."""
    if SLEEP_S:
        time.sleep(SLEEP_S)
    return pictures


class Sleep(layers.Layer):  # type: ignore[misc]
    """Hands its input on after ``SLEEP_S``; what follows has to wait for it."""

    def call(self, pictures: tf.Tensor) -> tf.Tensor:
        """The input itself."""
        passed = tf.numpy_function(slept, [pictures], tf.float32, stateful=True)
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
