"""Columns of a table: StringLookup and Normalization inside of the model."""

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

kinds = np.array(["a", "b", "c", "a"] * 4)
sizes = np.random.rand(16, 1).astype("float32")

lookup = layers.StringLookup(output_mode="one_hot")
lookup.adapt(kinds)
normalize = layers.Normalization()
normalize.adapt(sizes)

kind_in = tf.keras.Input((1,), name="kind", dtype="string")
size_in = tf.keras.Input((1,), name="size")
x = layers.concatenate([lookup(kind_in), normalize(size_in)])
model = tf.keras.Model([kind_in, size_in], layers.Dense(1)(x))
model.compile("adam", "mse")
data = tf.data.Dataset.from_tensor_slices(
    ({"kind": kinds[:, None], "size": sizes}, np.random.rand(16, 1))
).batch(4)
model.fit(data, epochs=1, verbose=0)
