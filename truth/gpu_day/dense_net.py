"""A small dense network on made-up rows, which is measured again and again: it compiles at once."""

import keras
import numpy as np
from keras import layers

CLASSES, WIDTH, SAMPLES, BATCH = 10, 256, 8192, 256

rng = np.random.default_rng(0)
rows = rng.standard_normal((SAMPLES, WIDTH), dtype="float32")
labels = rng.integers(0, CLASSES, SAMPLES).astype("int32")

keras.utils.set_random_seed(1)
model = keras.Sequential(
    [
        keras.Input((WIDTH,)),
        layers.Dense(1024, activation="relu"),
        layers.Dense(1024, activation="relu"),
        layers.Dense(CLASSES),
    ],
    name="dense_net",
)
model.compile(
    optimizer=keras.optimizers.Adam(1e-3),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
)
model.fit(rows, labels, batch_size=BATCH, epochs=3, verbose=0)
