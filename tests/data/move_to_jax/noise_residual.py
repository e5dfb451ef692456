"""A layer that adds noise in training, inside of a model as a block."""

import numpy as np
import tensorflow as tf
from tensorflow.keras import Model, layers


class GaussianNoiseLayer(layers.Layer):
    def __init__(self, stddev=0.1, **kw):
        super(GaussianNoiseLayer, self).__init__(**kw)
        self.stddev = stddev

    def build(self, input_shape):
        self.scale = self.add_weight(shape=(input_shape[-1],), initializer="ones", trainable=True)

    def call(self, inputs, training=None):
        if training:
            noise = tf.random.normal(shape=tf.shape(inputs), mean=0.0, stddev=self.stddev)
            inputs = inputs + noise
        return inputs * self.scale


class ResNetBlock(Model):
    def __init__(self, units):
        super().__init__()
        self.d1, self.d2 = layers.Dense(units, "relu"), layers.Dense(units)
        self.noise = GaussianNoiseLayer()

    def call(self, x, training=False):
        h = self.noise(self.d2(self.d1(x)), training=training)
        return tf.nn.leaky_relu(tf.add(x, h), alpha=0.1)


m = tf.keras.Sequential([layers.Input((8,)), ResNetBlock(8), layers.Dense(1)])
m.compile("adam", "mae", steps_per_execution=2)
m.fit(np.random.rand(32, 8), np.random.rand(32, 1), batch_size=8, verbose=0)
print(m(np.random.rand(2, 8)).numpy())
