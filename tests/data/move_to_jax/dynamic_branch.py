"""A layer that branches on its numbers, in a functional model."""

import numpy as np
import tensorflow as tf
from tensorflow import keras


class Clip(keras.layers.Layer):
    def call(self, x):
        norm = tf.norm(x)
        if norm > 1.0:
            return x / norm
        return x


class Wrapped(keras.Model):
    def __init__(self):
        super().__init__()
        self.clip, self.out = Clip(), keras.layers.Dense(1)

    def call(self, x):
        return self.out(self.clip(x))


model = Wrapped()
model.compile("adam", "mse", run_eagerly=True)
model.fit(np.random.rand(8, 4).astype("float32"), np.random.rand(8, 1), epochs=1, verbose=0)
