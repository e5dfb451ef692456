"""What the image classifiers share: enlarged images, and the end of a model and its loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import numpy as np
from keras import layers, ops

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tfdyno.core.base.untyped import Tensor, Value

MEAN, DEVIATION = 0.2860, 0.3530
"""The mean and the spread of the pixels of Fashion-MNIST, as shares of 255; they also serve the
digits."""


def classifier(inputs: Tensor, logits: Tensor, name: str) -> keras.Model:
    """Make a model with float32 logits whatever the policy, as Keras asks for mixed precision."""
    logits = layers.Activation("linear", dtype="float32", name="logits")(logits)
    return keras.Model(inputs, logits, name=name)


def compile_classifier(model: keras.Model, optimizer: keras.Optimizer) -> keras.Model:
    """Compile cross-entropy over classes given as integers, and accuracy."""
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=optimizer, loss=loss, metrics=["accuracy"])
    return model


def enlarged(images: Value, factor: int) -> Value:
    """Enlarge grey 28 × 28 pictures as three equal channels by ``factor``, 0 to 255."""
    large = ops.repeat(ops.repeat(images, factor, axis=1), factor, axis=2)
    return ops.cast(ops.repeat(large[..., None], 3, axis=3), "float32")


def standardised(pixels: Value) -> Value:
    """Return pixels from 0 to 255 with mean 0 and deviation 1."""
    return (pixels / 255.0 - MEAN) / DEVIATION


def random_images(
    generator: np.random.Generator, count: int, side: int, classes: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return noise and classes at random; pixels have mean 0 and deviation 1."""
    pixels = generator.standard_normal((count, side, side, 3), dtype=np.float32)
    return pixels, generator.integers(0, classes, count, dtype=np.int32)
