"""Data by Python functions and a lookup table in tf.data."""

import numpy as np
import tensorflow as tf

table = tf.lookup.StaticHashTable(
    tf.lookup.KeyValueTensorInitializer(["cat", "dog"], tf.constant([0, 1], tf.int64)), -1
)


def noisy(signal):
    return (signal + np.random.normal(size=signal.shape) * 0.01).astype("float32")


def generate():
    for name in ["cat", "dog"] * 8:
        yield np.random.rand(8).astype("float32"), name


def prepare(signal, name):
    signal = tf.numpy_function(noisy, [signal], tf.float32)
    signal = tf.ensure_shape(signal, (8,))
    return signal, table.lookup(name)


signature = (tf.TensorSpec((8,), tf.float32), tf.TensorSpec((), tf.string))
data = tf.data.Dataset.from_generator(generate, output_signature=signature)
data = data.map(prepare).batch(4)
for signals, names in data.take(1):
    print(signals.numpy().shape, names.numpy())

model = tf.keras.Sequential([tf.keras.layers.Dense(4, "relu"), tf.keras.layers.Dense(2)])
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(data, epochs=1, verbose=0)
