"""A recommendation model like DLRM: 13 numbers and 26 categories decide a click.

Bottom and top perceptrons and the width of the embeddings are those of DLRM for Criteo Kaggle; its
tables have up to ten million rows, here each has 100,000.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import numpy as np
from keras import layers, ops

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Tensor, Value

BATCH_SIZES = (2048, 128)
SAMPLES_PER_EPOCH = 0
GOAL_STEPS = 16
NUMBERS, CATEGORIES, ROWS, WIDTH = 13, 26, 100_000, 16
BOTTOM, TOP = (512, 256, 64, WIDTH), (512, 256)
RATE = 0.1
BLOCKS = slice(5, 44)
"""39 of the 49 blocks of 4 × 4 pixels: without the upper and the lower edge."""
LEVELS = 32


@keras.saving.register_keras_serializable("tfdyno")
class Interaction(layers.Layer):
    """Products of all pairs of vectors: the lower triangle of a Gram matrix."""

    def call(self, vectors: Value) -> Value:
        """Map ``[batch, count, width]`` to ``[batch, count (count - 1) / 2]``."""
        count = vectors.shape[1]
        products = ops.matmul(vectors, ops.transpose(vectors, (0, 2, 1)))
        row, column = np.tril_indices(count, -1)
        return ops.take(ops.reshape(products, (-1, count * count)), row * count + column, axis=1)


def compiled(batch_size: int) -> keras.Model:
    """Return the model with plain SGD, as DLRM is trained."""
    model = _model()
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    accuracy = keras.metrics.BinaryAccuracy("accuracy", threshold=0.0)
    model.compile(optimizer=keras.optimizers.SGD(RATE), loss=loss, metrics=[accuracy])
    return model


def _model() -> keras.Model:
    numbers = keras.Input((NUMBERS,), name="numbers")
    categories = keras.Input((CATEGORIES,), dtype="int32", name="categories")
    x = _perceptron(numbers, BOTTOM)
    vectors = [x, *(_embedding()(categories[:, i]) for i in range(CATEGORIES))]
    pairs = Interaction()(ops.stack(vectors, axis=1))
    click = layers.Dense(1)(_perceptron(layers.Concatenate()([x, pairs]), TOP))
    click = layers.Activation("linear", dtype="float32", name="logits")(click)
    return keras.Model([numbers, categories], click, name="dlrm")


def _embedding() -> layers.Embedding:
    edge = ROWS**-0.5
    start = keras.initializers.RandomUniform(-edge, edge)
    return layers.Embedding(ROWS, WIDTH, embeddings_initializer=start)


def _perceptron(x: Tensor, widths: tuple[int, ...]) -> Value:
    for width in widths:
        x = layers.Dense(width, activation="relu")(x)
    return x


def random_examples(generator: np.random.Generator, count: int) -> tuple[Any, Any]:
    """Draw every row of every table equally likely."""
    numbers = generator.standard_normal((count, NUMBERS), dtype=np.float32)
    categories = generator.integers(0, ROWS, (count, CATEGORIES), dtype=np.int32)
    return (numbers, categories), generator.integers(0, 2, (count, 1)).astype(np.float32)


def examples(pictures: Tensor, labels: Tensor) -> tuple[Any, Any]:
    """Return mean brightness of 39 blocks: every third as a number, the others as one of 32 levels.

    The click is a class above 4: shoes, shirts and bags of Fashion-MNIST, or the digits 5 to 9.
    """
    blocks = ops.reshape(ops.cast(pictures, "float32"), (-1, 7, 4, 7, 4))
    means = ops.reshape(ops.mean(blocks, axis=(2, 4)), (-1, 49))[:, BLOCKS] / 256.0
    chosen = np.arange(NUMBERS + CATEGORIES)
    numbers = ops.take(means, chosen[::3], axis=1)
    levels = ops.floor(ops.take(means, chosen[chosen % 3 > 0], axis=1) * LEVELS)
    return (numbers, ops.cast(levels, "int32")), ops.cast(labels > 4, "float32")[:, None]
