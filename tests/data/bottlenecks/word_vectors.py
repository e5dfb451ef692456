"""Vectors of words that stand near each other."""

import keras
import numpy as np
import tensorflow as tf

WORDS, WIDTH, BATCH = 2000, 32, 32


class Neighbours(keras.Model):
    def __init__(self):
        super().__init__()
        self.centre = keras.layers.Embedding(WORDS, WIDTH)
        self.around = keras.layers.Embedding(WORDS, WIDTH)
        self.mix = keras.layers.Dense(WIDTH, activation="tanh")

    def call(self, words):
        return self.mix(self.centre(words))


def losses(model, words, near, far):
    total = 0.0
    for i in range(BATCH):
        vector = model(words[i : i + 1])
        good = tf.reduce_sum(vector * model.around(near[i : i + 1]), -1)
        bad = tf.reduce_sum(vector * model.around(far[i]), -1)
        total += tf.reduce_mean(tf.nn.softplus(-good)) + tf.reduce_mean(tf.nn.softplus(bad))
    return total / BATCH


def main():
    keras.utils.set_random_seed(24)
    rng = np.random.default_rng(24)
    model = Neighbours()
    model(np.zeros((1,), "int32"))
    model.around(np.zeros((1,), "int32"))
    optimizer = keras.optimizers.Adagrad(0.05)
    for step in range(120):
        words = rng.zipf(1.4, BATCH).clip(0, WORDS - 1).astype("int32")
        near = ((words + rng.integers(1, 5, BATCH)) % WORDS).astype("int32")
        far = rng.integers(0, WORDS, (BATCH, 5)).astype("int32")
        with tf.GradientTape() as tape:
            loss = losses(model, words, near, far)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        if step % 20 == 0:
            print(step, float(loss))


if __name__ == "__main__":
    main()
