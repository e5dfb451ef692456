"""A small LSTM: two layers of 128 units read an image row by row, 28 steps of 28 numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import numpy as np
from keras import layers, ops

from tfdyno.runtime.workload.tasks import images

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Tensor

BATCH_SIZES = (512, 64)
SAMPLES_PER_EPOCH = 60_000
GOAL_STEPS = 32
STEPS, FEATURES, UNITS, CLASSES = 28, 28, 128, 10
RATE = 0.001


def compiled(batch_size: int) -> keras.Model:
    """Return the model with Adam at its usual rate."""
    inputs = keras.Input((STEPS, FEATURES))
    x = layers.LSTM(UNITS, return_sequences=True)(inputs)
    logits = layers.Dense(CLASSES)(layers.LSTM(UNITS)(x))
    model = images.classifier(inputs, logits, "lstm")
    return images.compile_classifier(model, keras.optimizers.Adam(RATE))


def random_examples(generator: np.random.Generator, count: int) -> tuple[Any, Any]:
    """Return noise with random classes."""
    x = generator.standard_normal((count, STEPS, FEATURES), dtype=np.float32)
    return x, generator.integers(0, CLASSES, count, dtype=np.int32)


def examples(pictures: Tensor, labels: Tensor) -> tuple[Any, Any]:
    """Take each row of an image as a step."""
    return images.standardised(ops.cast(pictures, "float32")), labels
