"""Clicks on adverts: a log in memory, one row per view."""

import keras
import numpy as np
import tensorflow as tf

VIEWS, NUMBERS, BATCH = 40_000, 13, 512
keras.utils.set_random_seed(10)
rng = np.random.default_rng(10)
log = {
    "numbers": rng.gamma(1.0, 20.0, (VIEWS, NUMBERS)).astype("float32"),
    "site": rng.integers(0, 1000, VIEWS),
    "device": rng.integers(0, 8, VIEWS),
}
clicked = (rng.random(VIEWS) < 0.2).astype("float32")


def prepare(row, label):
    numbers = tf.math.log1p(row["numbers"])
    numbers = (numbers - 2.5) / 1.2
    device = tf.one_hot(row["device"], 8)
    return {"values": tf.concat([numbers, device], -1), "site": row["site"]}, label


data = tf.data.Dataset.from_tensor_slices((log, clicked))
data = data.map(prepare, num_parallel_calls=tf.data.AUTOTUNE)
data = data.shuffle(VIEWS, seed=10).batch(BATCH).prefetch(tf.data.AUTOTUNE)

dense = keras.Input((NUMBERS + 8,), name="values")
site = keras.Input((), dtype="int64", name="site")
joined = keras.layers.Concatenate()([dense, keras.layers.Embedding(1000, 8)(site)])
hidden = keras.layers.Dense(32, activation="relu")(joined)
score = keras.layers.Dense(1, activation="sigmoid")(hidden)
model = keras.Model({"values": dense, "site": site}, score)
model.compile("sgd", "binary_crossentropy", jit_compile=False)
model.fit(data, epochs=4, verbose=2)
