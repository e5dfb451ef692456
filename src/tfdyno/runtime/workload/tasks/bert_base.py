"""BERT-base, uncased, with a classifier of ten classes on its pooled output; 128 tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import numpy as np
from keras import layers, ops

from tfdyno.runtime.workload.tasks import images

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Tensor, Value

BATCH_SIZES = (32, 8)
SAMPLES_PER_EPOCH = 0
GOAL_STEPS = 1
LENGTH, WIDTH, DEPTH, HEADS = 128, 768, 12, 12
VOCABULARY, POSITIONS, SEGMENTS, CLASSES = 30_522, 512, 2, 10
DROPOUT, EPSILON = 0.1, 1e-12
RATE = 5e-5
CLASSIFY_TOKEN, FIRST_LEVEL_TOKEN, LEVELS = 101, 1000, 32
"""101 is [CLS] in BERT's vocabulary; brightness takes the place of words from 1000 on."""


@keras.saving.register_keras_serializable("tfdyno")
class Position(layers.Layer):
    """Adds a learned vector for every position."""

    def build(self, shape: tuple[int, ...]) -> None:
        """Create the vectors of all 512 positions, whatever the length of the input."""
        self.table = self.add_weight(
            shape=(POSITIONS, shape[-1]), initializer=_start(), name="table"
        )

    def call(self, x: Tensor) -> Value:
        """Add the first vectors of the table to ``x``."""
        return x + self.table[: x.shape[1]]


def compiled(batch_size: int) -> keras.Model:
    """Return the model with AdamW, as for fine-tuning."""
    optimizer = keras.optimizers.AdamW(RATE, weight_decay=0.01, global_clipnorm=1.0)
    return images.compile_classifier(_model(), optimizer)


def _model() -> keras.Model:
    tokens, segments, mask = (
        keras.Input((LENGTH,), dtype="int32", name=name)
        for name in ("token_ids", "segment_ids", "padding_mask")
    )
    x = layers.Add()([_embedding(VOCABULARY)(tokens), _embedding(SEGMENTS)(segments)])
    x = layers.Dropout(DROPOUT)(_norm(Position()(x)))
    visible = layers.Reshape((1, LENGTH))(mask)
    for _ in range(DEPTH):
        x = _block(x, visible)
    pooled = layers.Dropout(DROPOUT)(_dense(WIDTH, "tanh")(x[:, 0]))
    return images.classifier([tokens, segments, mask], _dense(CLASSES)(pooled), "bert-base")


def _block(x: Tensor, visible: Value) -> Value:
    """Stack attention, then a perceptron, each added to its input and normalised after that."""
    attention = layers.MultiHeadAttention(
        HEADS, WIDTH // HEADS, dropout=DROPOUT, kernel_initializer=_start()
    )
    y = layers.Dropout(DROPOUT)(attention(x, x, attention_mask=visible))
    x = _norm(layers.Add()([x, y]))
    y = layers.Dropout(DROPOUT)(_dense(WIDTH)(_dense(4 * WIDTH, "gelu")(x)))
    return _norm(layers.Add()([x, y]))


def _start() -> keras.Initializer:
    return keras.initializers.TruncatedNormal(stddev=0.02)


def _embedding(rows: int) -> layers.Embedding:
    return layers.Embedding(rows, WIDTH, embeddings_initializer=_start())


def _dense(width: int, activation: str | None = None) -> layers.Dense:
    return layers.Dense(width, activation=activation, kernel_initializer=_start())


def _norm(x: Tensor) -> Value:
    return layers.LayerNormalization(epsilon=EPSILON)(x)


def random_examples(generator: np.random.Generator, count: int) -> tuple[Any, Any]:
    """Draw every word of the vocabulary equally likely; no padding."""
    tokens = generator.integers(0, VOCABULARY, (count, LENGTH), dtype=np.int32)
    x = (tokens, np.zeros_like(tokens), np.ones_like(tokens))
    return x, generator.integers(0, CLASSES, count, dtype=np.int32)


def examples(pictures: Tensor, labels: Tensor) -> tuple[Any, Any]:
    """Cut 127 blocks of 2 × 4 pixels of the framed image as words for 32 levels, after [CLS].

    The block whose place [CLS] takes lies in the frame.
    """
    framed = ops.pad(ops.cast(pictures, "float32"), ((0, 0), (2, 2), (2, 2)))
    means = ops.mean(ops.reshape(framed, (-1, 16, 2, 8, 4)), axis=(2, 4))
    words = FIRST_LEVEL_TOKEN + ops.cast(ops.floor(means * (LEVELS / 256)), "int32")
    first = np.arange(LENGTH) == 0
    tokens = ops.where(first, CLASSIFY_TOKEN, ops.reshape(words, (-1, LENGTH)))
    return (tokens, ops.zeros_like(tokens), ops.ones_like(tokens)), labels
