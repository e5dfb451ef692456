"""Matches captions to pictures: both are vectors already."""

import keras
import numpy as np
import tensorflow as tf

WIDTH, BATCH = 128, 128
keras.utils.set_random_seed(21)
rng = np.random.default_rng(21)
pictures = rng.normal(size=(6400, WIDTH)).astype("float32")
captions = (pictures[:, ::-1] + rng.normal(size=(6400, WIDTH))).astype("float32")


def tower():
    return keras.Sequential(
        [
            keras.layers.Dense(96, activation="relu"),
            keras.layers.Dense(48),
            keras.layers.UnitNormalization(),
        ]
    )


def margins(scores):
    scores = scores.numpy()
    found = np.zeros_like(scores)
    for row in range(len(scores)):
        own = scores[row, row]
        for column in range(len(scores)):
            if row != column and scores[row, column] > own - 0.2:
                found[row, column] = 1.0
    return found


class Matcher(keras.Model):
    def __init__(self):
        super().__init__()
        self.of_picture, self.of_caption = tower(), tower()

    def call(self, inputs):
        picture, caption = inputs
        return self.of_picture(picture), self.of_caption(caption)

    def train_step(self, data):
        ((picture, caption),) = data
        with tf.GradientTape() as tape:
            a, b = self((picture, caption), training=True)
            scores = tf.matmul(a, b, transpose_b=True)
            chosen = tf.py_function(margins, [tf.stop_gradient(scores)], tf.float32)
            chosen = tf.stop_gradient(tf.ensure_shape(chosen, (BATCH, BATCH)))
            gap = 0.2 + scores - tf.linalg.diag_part(scores)[:, None]
            loss = tf.reduce_sum(chosen * gap) / (tf.reduce_sum(chosen) + 1.0)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}


data = tf.data.Dataset.from_tensor_slices((pictures, captions)).map(lambda a, b: ((a, b),))
data = data.cache().shuffle(6400).batch(BATCH, drop_remainder=True).prefetch(2)
model = Matcher()
model.compile(optimizer=keras.optimizers.Adam(1e-3), jit_compile=False)
model.fit(data, epochs=4, verbose=2)
