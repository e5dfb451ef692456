"""A small GAN with two networks and two optimizers."""

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

generator = tf.keras.Sequential([layers.Input((4,)), layers.Dense(8, "tanh")])
discriminator = tf.keras.Sequential([layers.Input((8,)), layers.Dense(1)])
cross_entropy = tf.keras.losses.BinaryCrossentropy(from_logits=True)
g_opt, d_opt = tf.keras.optimizers.Adam(1e-4), tf.keras.optimizers.Adam(1e-4)


@tf.function
def train_step(images):
    noise = tf.random.normal([8, 4])
    with tf.GradientTape() as g_tape, tf.GradientTape() as d_tape:
        fake = generator(noise, training=True)
        real_out, fake_out = discriminator(images), discriminator(fake)
        g_loss = cross_entropy(tf.ones_like(fake_out), fake_out)
        d_loss = cross_entropy(tf.ones_like(real_out), real_out)
        d_loss += cross_entropy(tf.zeros_like(fake_out), fake_out)
    g_opt.apply_gradients(
        zip(g_tape.gradient(g_loss, generator.trainable_variables), generator.trainable_variables)
    )
    d_opt.apply_gradients(
        zip(
            d_tape.gradient(d_loss, discriminator.trainable_variables),
            discriminator.trainable_variables,
        )
    )


data = tf.data.Dataset.from_tensor_slices(np.random.rand(16, 8).astype("float32")).batch(8)
for batch in data:
    train_step(batch)
