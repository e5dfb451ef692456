"""Gestures from short tracks of a hand."""

import keras
import numpy as np
from keras import layers

rng = np.random.default_rng(20)
keras.utils.set_random_seed(20)
tracks = rng.normal(size=(2048, 40, 6)).astype("float32")
gestures = rng.integers(0, 9, 2048)


def block(x, width):
    shortcut = layers.Conv1D(width, 1, padding="same")(x)
    x = layers.Conv1D(width, 3, padding="same")(x)
    x = layers.BatchNormalization()(x)
    x = layers.ReLU()(x)
    x = layers.Conv1D(width, 3, padding="same")(x)
    x = layers.BatchNormalization()(x)
    return layers.ReLU()(layers.Add()([x, shortcut]))


inputs = keras.Input((40, 6))
x = inputs
for width in (16, 24, 32):
    x = block(x, width)
    x = layers.MaxPooling1D(2)(x)
x = layers.Dropout(0.2)(layers.GlobalAveragePooling1D()(x))
model = keras.Model(inputs, layers.Dense(9, activation="softmax")(x))
model.compile(
    optimizer=keras.optimizers.AdamW(2e-3),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
    run_eagerly=True,
)
model.fit(tracks, gestures, batch_size=64, epochs=4, verbose=2)
