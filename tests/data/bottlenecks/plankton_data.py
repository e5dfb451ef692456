"""Kinds of plankton, from pictures in records."""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from keras import layers

SIDE, BATCH, PICTURES, KINDS = 40, 64, 1280, 6
AUTO = tf.data.AUTOTUNE


def write(path):
    rng = np.random.default_rng(64)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for _ in range(PICTURES):
            picture = tf.constant(rng.integers(0, 255, (SIDE, SIDE, 1)), tf.uint8)
            features = {
                "png": tf.train.Feature(
                    bytes_list=tf.train.BytesList(value=[tf.io.encode_png(picture).numpy()])
                ),
                "kind": tf.train.Feature(
                    int64_list=tf.train.Int64List(value=[int(rng.integers(KINDS))])
                ),
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())


def parse(record):
    row = tf.io.parse_single_example(
        record,
        {
            "png": tf.io.FixedLenFeature([], tf.string),
            "kind": tf.io.FixedLenFeature([], tf.int64),
        },
    )
    picture = tf.ensure_shape(tf.io.decode_png(row["png"], 1), (SIDE, SIDE, 1))
    return tf.cast(picture, tf.float32) / 255.0, row["kind"]


keras.utils.set_random_seed(64)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "plankton.tfrecord"
    write(path)
    data = tf.data.TFRecordDataset(str(path)).map(parse, num_parallel_calls=AUTO).cache()
    data = data.shuffle(PICTURES).batch(BATCH, drop_remainder=True).prefetch(AUTO)
    model = keras.Sequential([keras.Input((SIDE, SIDE, 1))])
    for width in (32, 64, 64):
        model.add(layers.Conv2D(width, 3, padding="same", activation="relu"))
        model.add(layers.AveragePooling2D(2))
    model.add(layers.Flatten())
    model.add(layers.Dense(KINDS, activation="softmax"))
    model.compile(
        "adam", "sparse_categorical_crossentropy", metrics=["accuracy"], jit_compile=False
    )
    model.fit(data, epochs=6, verbose=2)
