"""Sentences of different lengths, padded batch by batch."""

import numpy as np
import tensorflow as tf

sentences = tf.ragged.constant([[1, 2], [3], [1, 2, 3], [4, 1]])
data = tf.data.Dataset.from_tensor_slices((sentences, np.zeros((4, 1), "float32")))
data = data.batch(2).map(lambda x, y: (x.to_tensor(), y))

model = tf.keras.Sequential(
    [
        tf.keras.layers.Embedding(10, 4, mask_zero=True),
        tf.keras.layers.GRU(4),
        tf.keras.layers.Dense(1),
    ]
)
model.compile("adam", "mse")
model.fit(data, epochs=1, verbose=0)
