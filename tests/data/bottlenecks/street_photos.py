"""Street scenes: a folder of photos for each kind of place."""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from keras import layers

PLACES = ("bridge", "crossing", "square", "tunnel")
SIDE, BATCH = 64, 16
AUTO = tf.data.AUTOTUNE


def photograph(folder):
    rng = np.random.default_rng(5)
    for place in PLACES:
        (folder / place).mkdir()
        for number in range(40):
            rough = rng.integers(0, 255, (30, 40, 3)).astype("float32")
            photo = tf.cast(tf.image.resize(rough, (720, 960)), tf.uint8)
            name = folder / place / f"{number:03}.jpg"
            tf.io.write_file(str(name), tf.io.encode_jpeg(photo, quality=92))


def load(path, label):
    photo = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.image.resize(photo, (SIDE, SIDE)) / 255.0, label


def dataset(folder):
    paths = sorted(str(path) for path in folder.glob("*/*.jpg"))
    labels = [PLACES.index(Path(path).parent.name) for path in paths]
    data = tf.data.Dataset.from_tensor_slices((paths, labels))
    data = data.map(load, num_parallel_calls=AUTO).shuffle(len(paths))
    return data.batch(BATCH).prefetch(AUTO)


def network():
    inputs = keras.Input((SIDE, SIDE, 3))
    x = layers.SeparableConv2D(16, 3, strides=2, activation="relu")(inputs)
    x = layers.SeparableConv2D(32, 3, strides=2, activation="relu")(x)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(len(PLACES), activation="softmax")(x))


if __name__ == "__main__":
    keras.utils.set_random_seed(5)
    with tempfile.TemporaryDirectory() as name:
        photograph(Path(name))
        model = network()
        model.compile("adam", "sparse_categorical_crossentropy", jit_compile=False)
        model.fit(dataset(Path(name)), epochs=12, verbose=2)
