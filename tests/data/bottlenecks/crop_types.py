"""Crops of fields from a year of satellite values."""

import keras
import numpy as np
from keras import layers

DATES, BANDS, CROPS = 48, 6, 10


def fields(count, seed):
    rng = np.random.default_rng(seed)
    crops = rng.integers(0, CROPS, count)
    season = np.sin(np.linspace(0, 3, DATES)[None, :, None] * (1 + crops[:, None, None] / 4))
    values = season + 0.3 * rng.normal(size=(count, DATES, BANDS))
    return values.astype("float32"), crops


keras.utils.set_random_seed(40)
train, held_out = fields(960, 1), fields(12_000, 2)
model = keras.Sequential(
    [
        keras.Input((DATES, BANDS)),
        layers.Conv1D(32, 5, activation="relu", padding="same"),
        layers.Conv1D(32, 5, activation="relu", padding="same"),
        layers.MaxPooling1D(2),
        layers.Conv1D(48, 3, activation="relu", padding="same"),
        layers.GlobalAveragePooling1D(),
        layers.Dense(CROPS, activation="softmax"),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(2e-3),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
    jit_compile=False,
)
model.fit(*train, batch_size=64, epochs=8, validation_data=held_out, verbose=2)
