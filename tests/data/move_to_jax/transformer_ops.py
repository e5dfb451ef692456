"""A transformer block in plain Keras 3."""

import keras
import numpy as np
from keras import layers, ops


class Block(layers.Layer):
    def __init__(self, width, heads, **kwargs):
        super().__init__(**kwargs)
        self.attention = layers.MultiHeadAttention(heads, width // heads)
        self.norm = layers.LayerNormalization()
        self.feed_forward = keras.Sequential([layers.Dense(width, "gelu"), layers.Dense(width)])

    def call(self, x, training=False):
        x = x + self.attention(x, x, use_causal_mask=True, training=training)
        return self.norm(x + self.feed_forward(x))


class Positions(layers.Layer):
    def __init__(self, length, width, **kwargs):
        super().__init__(**kwargs)
        self.table = layers.Embedding(length, width)

    def call(self, x):
        return x + self.table(ops.arange(0, ops.shape(x)[1]))


inputs = keras.Input((6,), dtype="int32")
x = Positions(6, 8)(layers.Embedding(20, 8)(inputs))
x = Block(8, 2)(x)
model = keras.Model(inputs, layers.Dense(20)(x))
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
tokens = np.random.randint(0, 20, (8, 7))
model.fit(tokens[:, :-1], tokens[:, 1:], epochs=1, verbose=0)
