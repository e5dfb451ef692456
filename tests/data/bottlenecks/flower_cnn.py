"""Kinds of flowers in small pictures."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

KINDS, SIDE, BATCH = 10, 48, 64
keras.utils.set_random_seed(60)
rng = np.random.default_rng(60)
pictures = rng.random((1280, SIDE, SIDE, 3)).astype("float32")
kinds = rng.integers(0, KINDS, 1280)

data = tf.data.Dataset.from_tensor_slices((pictures, kinds)).cache()
data = data.shuffle(1280).batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)

model = keras.Sequential(
    [
        keras.Input((SIDE, SIDE, 3)),
        layers.Conv2D(32, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(64, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(96, 3, padding="same", activation="relu"),
        layers.GlobalAveragePooling2D(),
        layers.Dense(KINDS),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(1e-3),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
    jit_compile=False,
)
model.fit(data, epochs=5, verbose=2)
