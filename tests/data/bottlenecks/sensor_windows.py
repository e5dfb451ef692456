"""Faults of a machine from windows of its sensors; each window was recorded by itself."""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

WINDOWS, SAMPLES, BATCH = 2048, 128, 64
folder = tempfile.TemporaryDirectory()
rng = np.random.default_rng(7)
keras.utils.set_random_seed(7)


def record(values, fault):
    return tf.train.Example(
        features=tf.train.Features(
            feature={
                "values": tf.train.Feature(float_list=tf.train.FloatList(value=values)),
                "fault": tf.train.Feature(float_list=tf.train.FloatList(value=[fault])),
            }
        )
    ).SerializeToString()


for number in range(WINDOWS):
    fault = float(number % 2)
    path = Path(folder.name) / f"window-{number:05}.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(record(rng.normal(fault, 1.0, SAMPLES), fault))


def parse(rows):
    found = tf.io.parse_example(
        rows,
        {
            "values": tf.io.FixedLenFeature([SAMPLES], tf.float32),
            "fault": tf.io.FixedLenFeature([1], tf.float32),
        },
    )
    return found["values"], found["fault"]


files = tf.data.Dataset.list_files(f"{folder.name}/*.tfrecord", shuffle=False)
data = files.interleave(
    tf.data.TFRecordDataset, cycle_length=16, num_parallel_calls=tf.data.AUTOTUNE
)
data = data.batch(BATCH).map(parse, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)

model = keras.Sequential(
    [
        keras.Input((SAMPLES,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile("adam", "binary_crossentropy", jit_compile=False)
model.fit(data, epochs=8, verbose=2)
folder.cleanup()
