"""A layer of one's own with an own training signal, written as the Keras guide teaches it."""

import keras
from keras import layers, ops


class GatedUnit(layers.Layer):
    """A dense layer whose output is multiplied by a learned gate, with an activity penalty."""

    def __init__(self, units, penalty=1e-4, **options):
        super().__init__(**options)
        self.units, self.penalty = units, penalty

    def build(self, shape):
        self.kernel = self.add_weight(
            shape=(shape[-1], 2 * self.units), initializer="glorot_uniform"
        )
        self.bias = self.add_weight(shape=(2 * self.units,), initializer="zeros")

    def call(self, x):
        value, gate = ops.split(ops.matmul(x, self.kernel) + self.bias, 2, axis=-1)
        self.add_loss(self.penalty * ops.mean(ops.square(value)))
        return value * ops.sigmoid(gate)


def build():
    """The compiled model."""
    inputs = keras.Input((128,), name="features")
    x = GatedUnit(256)(inputs)
    x = layers.LayerNormalization()(x)
    x = GatedUnit(256)(x)
    model = keras.Model(inputs, layers.Dense(1)(x), name="gated_regressor")
    model.compile(optimizer=keras.optimizers.AdamW(1e-3), loss="mean_squared_error")
    return model


if __name__ == "__main__":
    import numpy as np

    generator = np.random.default_rng(0)
    build().fit(generator.normal(size=(5000, 128)), generator.normal(size=(5000, 1)), epochs=2)
