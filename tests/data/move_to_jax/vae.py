"""A variational autoencoder: a sampling layer, and the divergence by add_loss."""

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers


class Sampling(layers.Layer):
    """Uses (z_mean, z_log_var) to sample z."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)

    def call(self, inputs):
        z_mean, z_log_var = inputs
        batch = tf.shape(z_mean)[0]
        dim = tf.shape(z_mean)[1]
        epsilon = tf.random.normal(shape=(batch, dim))
        kl_loss = -0.5 * tf.reduce_mean(1 + z_log_var - tf.square(z_mean) - tf.exp(z_log_var))
        self.add_loss(kl_loss)
        return z_mean + tf.exp(0.5 * z_log_var) * epsilon


inputs = keras.Input((12,))
h = layers.Dense(8, activation="relu")(inputs)
z = Sampling()([layers.Dense(2)(h), layers.Dense(2)(h)])
outputs = layers.Dense(12, activation="sigmoid")(z)
vae = keras.Model(inputs, outputs)
vae.compile(optimizer="adam", loss="binary_crossentropy")
data = np.random.rand(32, 12).astype("float32")
vae.fit(data, data, epochs=1, batch_size=16, verbose=0)
