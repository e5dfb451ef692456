"""A weight of the loss that a callback raises, in a tf.Variable of the module."""

import numpy as np
import tensorflow as tf
from tensorflow import keras

beta = tf.Variable(0.0, trainable=False)


class Anneal(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        beta.assign(0.1 * epoch)


class KL(keras.layers.Layer):
    def call(self, x):
        self.add_loss(beta * keras.ops.mean(keras.ops.square(x)))
        return x


m = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4), KL(), keras.layers.Dense(1)])
m.compile("adam", "mse")
m.fit(np.random.rand(16, 8), np.random.rand(16, 1), verbose=0, callbacks=[Anneal()])
