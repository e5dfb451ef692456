"""Learns vectors of pictures without labels, in a loop of its own."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

SIDE, BATCH, EPOCHS = 32, 64, 4
keras.utils.set_random_seed(63)
rng = np.random.default_rng(63)
pictures = rng.random((1280, SIDE, SIDE, 3)).astype("float32")

encoder = keras.Sequential(
    [
        keras.Input((SIDE, SIDE, 3)),
        layers.Conv2D(32, 3, padding="same", activation="relu"),
        layers.Conv2D(64, 3, strides=2, padding="same", activation="relu"),
        layers.Conv2D(64, 3, padding="same", activation="relu"),
        layers.GlobalAveragePooling2D(),
        layers.Dense(64),
        layers.UnitNormalization(),
    ]
)
optimizer = keras.optimizers.Adam(1e-3)
optimizer.build(encoder.trainable_variables)
mean_loss = keras.metrics.Mean()


def two_views(batch):
    return batch[:, ::-1], batch + tf.random.normal(tf.shape(batch), stddev=0.05)


@tf.function
def train_step(batch):
    one, two = two_views(batch)
    with tf.GradientTape() as tape:
        a, b = encoder(one, training=True), encoder(two, training=True)
        scores = tf.matmul(a, b, transpose_b=True) / 0.1
        own = tf.range(tf.shape(scores)[0])
        loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(own, scores, True))
    gradients = tape.gradient(loss, encoder.trainable_variables)
    optimizer.apply(gradients, encoder.trainable_variables)
    mean_loss.update_state(loss)


data = tf.data.Dataset.from_tensor_slices(pictures).cache().shuffle(1280)
data = data.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
for epoch in range(EPOCHS):
    for batch in data:
        train_step(batch)
    print(f"epoch {epoch}: {float(mean_loss.result()):.4f}")
    mean_loss.reset_state()
