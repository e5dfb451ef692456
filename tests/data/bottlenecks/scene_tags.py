"""Tags of scenes: several may hold for a picture."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

TAGS, SIDE = 8, 32


def build():
    inputs = keras.Input((SIDE, SIDE, 3))
    x = inputs
    for width in (16, 32, 48):
        x = layers.Conv2D(width, 3, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization()(x)
        x = layers.Activation("relu")(x)
        x = layers.MaxPooling2D()(x)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(TAGS, activation="sigmoid", dtype="float32")(x))


if __name__ == "__main__":
    keras.utils.set_random_seed(54)
    keras.mixed_precision.set_global_policy("mixed_float16")
    rng = np.random.default_rng(54)
    scenes = rng.random((960, SIDE, SIDE, 3)).astype("float32")
    tags = (rng.random((960, TAGS)) < 0.3).astype("float32")
    data = tf.data.Dataset.from_tensor_slices((scenes, tags)).cache().shuffle(960)
    data = data.batch(32).prefetch(tf.data.AUTOTUNE)
    model = build()
    model.compile("adam", "binary_crossentropy", jit_compile=False)
    model.fit(data, epochs=4, verbose=2)
