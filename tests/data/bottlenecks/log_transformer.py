"""A small transformer that finds the odd line in a log."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

TOKENS, LENGTH, WIDTH, BATCH = 1000, 64, 128, 32


def block(x, heads=4):
    normal = layers.LayerNormalization()(x)
    x = x + layers.MultiHeadAttention(heads, WIDTH // heads)(normal, normal)
    hidden = layers.Dense(4 * WIDTH, activation="gelu")(layers.LayerNormalization()(x))
    return x + layers.Dense(WIDTH)(hidden)


keras.utils.set_random_seed(62)
rng = np.random.default_rng(62)
lines = rng.integers(1, TOKENS, (960, LENGTH)).astype("int32")
odd = (lines[:, 0] % 2).astype("float32")

tokens = keras.Input((LENGTH,), dtype="int32")
x = layers.Embedding(TOKENS, WIDTH)(tokens)
x = x + layers.Embedding(LENGTH, WIDTH)(np.arange(LENGTH))
for _ in range(2):
    x = block(x)
score = layers.Dense(1, activation="sigmoid")(layers.GlobalAveragePooling1D()(x))
model = keras.Model(tokens, score)
model.compile(optimizer=keras.optimizers.AdamW(3e-4), loss="binary_crossentropy", jit_compile=False)
data = tf.data.Dataset.from_tensor_slices((lines, odd)).shuffle(960)
data = data.batch(BATCH, drop_remainder=True).cache().prefetch(tf.data.AUTOTUNE)
model.fit(data, epochs=4, verbose=2)
