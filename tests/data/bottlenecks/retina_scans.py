"""Grades of retina scans, from one file of records."""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from keras import layers

SIZE, BATCH, SCANS = 64, 32, 512
keras.utils.set_random_seed(1)


def write_records(path):
    rng = np.random.default_rng(1)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for _ in range(SCANS):
            coarse = rng.integers(0, 255, (16, 16, 3)).astype("float32")
            scan = tf.cast(tf.image.resize(coarse, (160, 160)), tf.uint8)
            feature = {
                "scan": tf.train.Feature(
                    bytes_list=tf.train.BytesList(value=[tf.io.encode_png(scan).numpy()])
                ),
                "grade": tf.train.Feature(
                    int64_list=tf.train.Int64List(value=[int(rng.integers(5))])
                ),
            }
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())


def parse(record):
    row = tf.io.parse_single_example(
        record,
        {
            "scan": tf.io.FixedLenFeature([], tf.string),
            "grade": tf.io.FixedLenFeature([], tf.int64),
        },
    )
    scan = tf.image.convert_image_dtype(tf.io.decode_png(row["scan"], channels=3), tf.float32)
    scan = tf.image.random_flip_left_right(scan)
    scan = tf.image.random_contrast(scan, 0.8, 1.2)
    scan = tf.image.resize(scan, (SIZE, SIZE), antialias=True)
    return tf.image.per_image_standardization(scan), row["grade"]


with tempfile.TemporaryDirectory() as folder:
    records = Path(folder) / "scans.tfrecord"
    write_records(records)
    data = tf.data.TFRecordDataset(str(records)).shuffle(SCANS).map(parse)
    data = data.batch(BATCH).prefetch(tf.data.AUTOTUNE)
    model = keras.Sequential(
        [
            keras.Input((SIZE, SIZE, 3)),
            layers.Conv2D(12, 5, strides=4, activation="relu"),
            layers.Conv2D(24, 3, strides=2, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(5),
        ]
    )
    model.compile(
        "adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False
    )
    model.fit(data, epochs=8, verbose=2)
