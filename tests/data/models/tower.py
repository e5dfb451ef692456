"""Models whose memory is activations, or weights, for tests of how they are made to fit."""

from __future__ import annotations

import keras

layers = keras.layers


def tower() -> keras.Model:
    """Six residual blocks of two convolutions with BatchNormalization: activations."""
    x = inputs = keras.Input((64, 64, 3))
    x = layers.Conv2D(32, 3, padding="same")(x)
    for _ in range(6):
        x = _block(x)
    x = layers.GlobalAveragePooling2D()(x)
    model = keras.Model(inputs, layers.Dense(10)(x), name="tower")
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def stack() -> keras.Model:
    """Six dense layers of 4096: weights, and twice as much that Adam keeps."""
    x = inputs = keras.Input((4096,))
    for _ in range(6):
        x = layers.Dense(4096, activation="relu")(x)
    model = keras.Model(inputs, layers.Dense(10)(x), name="stack")
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def wide() -> keras.Model:
    """One dense layer whose weights alone are more than any card of 8 GB has."""
    model = keras.Sequential([keras.Input((60_000,)), layers.Dense(60_000)], name="wide")
    model.compile("adam", "mse")
    return model


def _block(x: keras.KerasTensor) -> keras.KerasTensor:
    y = x
    for _ in range(2):
        y = layers.Conv2D(32, 3, padding="same", use_bias=False)(y)
        y = layers.BatchNormalization()(y)
        y = layers.Activation("relu")(y)
    return layers.Add()([x, y])
