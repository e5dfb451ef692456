"""Orbits of small bodies from their places in the sky."""

import keras
import numpy as np

keras.backend.set_floatx("float64")
keras.utils.set_random_seed(53)


def places(bodies, nights=256):
    rng = np.random.default_rng(53)
    t = np.linspace(0, 30, nights)
    axis, phase = rng.uniform(1, 4, (bodies, 1)), rng.uniform(0, 6.28, (bodies, 1))
    angle = t / axis**1.5 + phase
    sky = np.concatenate([np.cos(angle), np.sin(angle)], axis=1)
    return sky + rng.normal(0, 1e-3, sky.shape), axis


sky, axis = places(6400)
inputs = keras.Input((sky.shape[1],))
x = inputs
for _ in range(3):
    x = keras.layers.Dense(768, activation="relu")(x)
model = keras.Model(inputs, keras.layers.Dense(1)(x))
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse", jit_compile=False)
model.fit(sky, axis, batch_size=256, epochs=6, verbose=2)
