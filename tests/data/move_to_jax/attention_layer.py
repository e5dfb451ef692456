"""A layer of one's own, with TensorFlow's operations in call."""

import numpy as np
import tensorflow as tf


class SelfAttention(tf.keras.layers.Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.query = tf.keras.layers.Dense(units)
        self.key = tf.keras.layers.Dense(units)
        self.value = tf.keras.layers.Dense(units)

    @tf.function
    def call(self, inputs, mask=None):
        q, k, v = self.query(inputs), self.key(inputs), self.value(inputs)
        scale = tf.math.sqrt(tf.cast(tf.shape(k)[-1], tf.float32))
        scores = tf.matmul(q, k, transpose_b=True) / scale
        if mask is not None:
            scores += (1.0 - tf.cast(mask, scores.dtype)) * -1e9
        weights = tf.nn.softmax(scores, axis=-1)
        context = tf.matmul(weights, v)
        return tf.concat([inputs, context], axis=-1)


inputs = tf.keras.Input((6, 8))
x = SelfAttention(4)(inputs)
x = tf.keras.layers.GlobalMaxPooling1D()(x)
model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(x))
model.compile("adam", "mse")
model.fit(np.random.rand(16, 6, 8), np.random.rand(16, 1), epochs=1, batch_size=8, verbose=0)
