"""A model whose weights are most of what a step holds."""

from __future__ import annotations

import keras


def wide() -> keras.Model:
    """Three matrices of 64, 128 and 16 MiB, compiled with Adam."""
    model = keras.Sequential(
        [
            keras.Input((2048,)),
            keras.layers.Dense(8192, activation="relu"),
            keras.layers.Dense(4096, activation="relu"),
            keras.layers.Dense(1024),
        ],
        name="wide",
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss)
    return model
