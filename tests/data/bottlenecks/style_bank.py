"""Colours of paintings; now and then a new basis is drawn to look at them."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

SIDE, BATCH, STEPS = 24, 64, 300
keras.utils.set_random_seed(45)
rng = np.random.default_rng(45)
paintings = rng.random((2048, SIDE, SIDE, 3)).astype("float32")

model = keras.Sequential(
    [
        keras.Input((SIDE, SIDE, 3)),
        layers.Conv2D(32, 3, padding="same", activation="relu"),
        layers.Conv2D(32, 3, padding="same", activation="relu"),
        layers.Conv2D(3, 3, padding="same"),
    ]
)
optimizer = keras.optimizers.Adam(1e-3)
optimizer.build(model.trainable_variables)


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(batch, training=True) - batch))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss


class Bank:
    """One look for each number, made when it is first asked for."""

    def __init__(self):
        self.looks = {}

    def look(self, number):
        if number not in self.looks:
            basis = rng.normal(size=(SIDE * SIDE * 3, 256)).astype("float32")

            @tf.function
            def project(batch):
                return tf.reduce_mean(tf.reshape(batch, (-1, SIDE * SIDE * 3)) @ basis)

            self.looks[number] = project
        return self.looks[number]


bank = Bank()
data = tf.data.Dataset.from_tensor_slices(paintings).cache().shuffle(2048).repeat()
data = data.batch(BATCH).prefetch(2)
for step, batch in enumerate(data.take(STEPS)):
    loss = train_step(batch)
    if step % 10 == 0:
        seen = bank.look(step)(batch[:8])
    if step % 50 == 0:
        print(step, float(loss), float(seen))
