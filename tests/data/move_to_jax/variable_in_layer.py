"""A layer that keeps a tf.Variable."""

import numpy as np
import tensorflow as tf


class Scale(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.scale = tf.Variable(1.0, trainable=True)

    def call(self, x):
        return x * self.scale


model = tf.keras.Sequential([tf.keras.Input((8,)), Scale(), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(np.random.rand(16, 8), np.random.rand(16, 1), epochs=1, verbose=0)
