"""A small denoiser whose noise falls with the number of the step."""

import argparse

import keras
import numpy as np
import tensorflow as tf
from keras import layers

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=150)
parser.add_argument("--batch", type=int, default=32)
options = parser.parse_args()

keras.utils.set_random_seed(27)
shapes = np.random.default_rng(27).random((1024, 16, 16, 1)).round().astype("float32")
denoiser = keras.Sequential(
    [
        keras.Input((16, 16, 1)),
        layers.Conv2D(16, 3, padding="same", activation="relu"),
        layers.Conv2D(16, 3, padding="same", activation="relu"),
        layers.Conv2D(1, 3, padding="same"),
    ]
)
optimizer = keras.optimizers.Adam(1e-3)
optimizer.build(denoiser.trainable_variables)


@tf.function
def train_step(clean, step, total):
    level = tf.maximum(0.05, 1.0 - tf.cast(step, tf.float32) / tf.cast(total, tf.float32))
    noisy = clean + level * tf.random.normal(tf.shape(clean))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.abs(denoiser(noisy, training=True) - clean))
    gradients = tape.gradient(loss, denoiser.trainable_variables)
    optimizer.apply(gradients, denoiser.trainable_variables)
    return loss


data = tf.data.Dataset.from_tensor_slices(shapes).cache().shuffle(1024, seed=27).repeat()
data = data.batch(options.batch, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
for step, clean in enumerate(data.take(options.steps)):
    loss = train_step(clean, step, options.steps)
    if step % 30 == 0:
        tf.print("step", step, "loss", loss)
