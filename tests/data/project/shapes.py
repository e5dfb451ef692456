"""Tells eight kinds of made-up shapes apart; ``--fast`` prepares several pictures at once."""

import sys

import keras
import numpy as np
import tensorflow as tf

SIZE, KINDS, BATCH, PICTURES = 48, 8, 32, 768
FAST = "--fast" in sys.argv


def pictures(count, seed):
    """Noisy stripes of eight directions."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, KINDS, count)
    rows, columns = np.mgrid[0:SIZE, 0:SIZE] / SIZE
    angles = kinds[:, None, None] * np.pi / KINDS
    waves = np.sin(30 * (rows * np.cos(angles) + columns * np.sin(angles)))
    noise = rng.normal(0, 1.2, (count, SIZE, SIZE))
    return (waves + noise).astype("float32")[..., None], kinds.astype("int32")


def prepared(picture, kind):
    """As large as the model wants it; the random contrast keeps it from being kept."""
    picture = tf.image.random_contrast(picture, 0.7, 1.3)
    for _ in range(6):
        picture = tf.image.resize(picture, (256, 256), antialias=True)
        picture = tf.image.resize(picture, (SIZE, SIZE), antialias=True)
    return tf.image.per_image_standardization(picture), kind


def rows():
    """To compare an export on: pictures that the model has not seen, and what they are."""
    x, y = pictures(256, 7)
    x = (x - x.mean((1, 2, 3), keepdims=True)) / x.std((1, 2, 3), keepdims=True)
    return x, y


def main():
    """Train as a user would."""
    keras.utils.set_random_seed(1)
    data = tf.data.Dataset.from_tensor_slices(pictures(PICTURES, 1)).shuffle(PICTURES)
    data = data.map(prepared, num_parallel_calls=tf.data.AUTOTUNE if FAST else None)
    data = data.batch(BATCH).prefetch(tf.data.AUTOTUNE)
    model = keras.Sequential(
        [
            keras.Input((SIZE, SIZE, 1)),
            keras.layers.Conv2D(16, 5, strides=2, activation="relu"),
            keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(KINDS, activation="softmax"),
        ],
        name="shapes",
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(data, epochs=6, verbose=2)


if __name__ == "__main__":
    main()
