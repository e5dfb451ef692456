"""Kinds of flowers from four lengths, many times over."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(31)
rng = np.random.default_rng(31)
centres = rng.normal(size=(3, 4)) * 2
kinds = rng.integers(0, 3, 38400)
lengths = (centres[kinds] + rng.normal(size=(38400, 4))).astype("float32")

normalise = keras.layers.Normalization()
normalise.adapt(lengths)
x = normalise(lengths).numpy()

data = tf.data.Dataset.from_tensor_slices((x, kinds)).batch(64).cache()
data = data.shuffle(600, seed=31).prefetch(tf.data.AUTOTUNE)

model = keras.Sequential(
    [
        keras.Input((4,)),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dense(3, activation="softmax"),
    ]
)
model.compile(
    optimizer="adam",
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
    steps_per_execution=1,
    jit_compile=False,
)
model.fit(data, epochs=8, verbose=2)
