"""Learns the next state of a fluid on a line of cells."""

import keras
import numpy as np
import tensorflow as tf

CELLS, BATCH = 48, 32


class Exchange(keras.layers.Layer):
    """Each cell gives to its neighbours what its own weight says."""

    def build(self, shape):
        self.rates = self.add_weight(shape=(CELLS,), initializer="uniform", name="rates")
        self.decay = self.add_weight(shape=(CELLS,), initializer="zeros", name="decay")

    def call(self, state):
        cells = tf.unstack(state, axis=1)
        after = []
        for i, cell in enumerate(cells):
            left, right = cells[i - 1], cells[(i + 1) % CELLS]
            flow = self.rates[i] * (left + right - 2.0 * cell)
            after.append(tf.tanh(cell + flow - self.decay[i] * cell))
        return tf.stack(after, axis=1)


def fluid(samples):
    rng = np.random.default_rng(30)
    before = rng.normal(size=(samples, CELLS)).astype("float32")
    after = np.tanh(before + 0.1 * (np.roll(before, 1, 1) + np.roll(before, -1, 1) - 2 * before))
    return before, after.astype("float32")


def main():
    keras.utils.set_random_seed(30)
    before, after = fluid(3200)
    inputs = keras.Input((CELLS,))
    x = inputs
    for _ in range(6):
        x = Exchange()(x)
    model = keras.Model(inputs, x)
    model.compile(optimizer="sgd", loss="mse", jit_compile=False)
    model.fit(before, after, batch_size=BATCH, epochs=4, verbose=2)


if __name__ == "__main__":
    main()
