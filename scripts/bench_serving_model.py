"""Writes the models that the serving benchmark loads, as SavedModels with seeded weights.

``cnn``: 28 x 28 x 1 pictures, the small convolutional network of the tutorials; ``slow``: the same
input, with so much to compute that a server of two CPUs answers 100 to 200 of them a second. It
runs in the serving environment. Weights are not trained: how fast a network is does not hang on
them.
"""

from __future__ import annotations

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras


def cnn() -> keras.Model:
    """Two convolutions and two dense layers."""
    return keras.Sequential(
        [
            keras.Input((28, 28, 1), name="image"),
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Conv2D(64, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(10, activation="softmax"),
        ],
        name="cnn",
    )


def slow(width: int) -> keras.Model:
    """Convolutions on the whole picture: the work grows with the square of ``width``."""
    layers = [keras.layers.Conv2D(width, 3, padding="same", activation="relu") for _ in range(6)]
    return keras.Sequential(
        [
            keras.Input((28, 28, 1), name="image"),
            *layers,
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(10, activation="softmax"),
        ],
        name="slow",
    )


def main() -> None:
    """Write ``FOLDER/cnn/1`` and ``FOLDER/slow/1``."""
    folder, width = sys.argv[1], int(sys.argv[2])
    keras.utils.set_random_seed(0)
    for model in (cnn(), slow(width)):
        model.export(f"{folder}/{model.name}/1", verbose=False)


if __name__ == "__main__":
    main()
