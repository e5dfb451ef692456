"""Vectors of articles in eight compressed shards."""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

SHARDS, ROWS, WIDTH, BATCH = 8, 64, 32768, 32


def write(folder):
    rng = np.random.default_rng(11)
    options = tf.io.TFRecordOptions(compression_type="GZIP", compression_level=4)
    paths = []
    for shard in range(SHARDS):
        paths.append(str(folder / f"articles-{shard:05}-of-{SHARDS:05}.gz"))
        with tf.io.TFRecordWriter(paths[-1], options) as writer:
            for _ in range(ROWS):
                vector = rng.normal(size=WIDTH).round(1).astype("float32")
                writer.write(vector.tobytes())
    return paths


@tf.function
def read(row):
    vector = tf.reshape(tf.io.decode_raw(row, tf.float32), (-1, WIDTH // 64, 64))
    pooled = tf.reduce_mean(vector, axis=1)
    return pooled, pooled


def main():
    keras.utils.set_random_seed(11)
    with tempfile.TemporaryDirectory() as folder:
        files = write(Path(folder))
        data = tf.data.TFRecordDataset(files, compression_type="GZIP")
        data = data.batch(BATCH).map(read, num_parallel_calls=tf.data.AUTOTUNE)
        data = data.prefetch(tf.data.AUTOTUNE)
        model = keras.Sequential(
            [
                keras.Input((64,)),
                keras.layers.Dense(32, activation="tanh"),
                keras.layers.Dense(64),
            ]
        )
        model.compile("adam", "mse", jit_compile=False)
        model.fit(data, epochs=8, verbose=2)


if __name__ == "__main__":
    main()
