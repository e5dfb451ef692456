"""Will a basket be bought? A table of baskets with a list of articles in each."""

import keras
import numpy as np
import tensorflow as tf

ARTICLES, BASKETS, BATCH = 200, 8192, 128
keras.utils.set_random_seed(2)
rng = np.random.default_rng(2)
lengths = rng.integers(4, 30, BASKETS)
baskets = [rng.integers(0, ARTICLES, n).tolist() for n in lengths]
prices = rng.gamma(2.0, 8.0, ARTICLES).astype("float32")
bought = (lengths > 15).astype("float32")


def examples():
    for articles, label in zip(baskets, bought):
        counts = np.zeros(ARTICLES, dtype="float32")
        total = 0.0
        for article in articles:
            counts[article] += 1.0
            total += float(prices[article])
        features = np.concatenate([counts, [total, total / len(articles)]]).astype("float32")
        yield features, label


data = (
    tf.data.Dataset.from_generator(
        examples,
        output_signature=(
            tf.TensorSpec((ARTICLES + 2,), tf.float32),
            tf.TensorSpec((), tf.float32),
        ),
    )
    .apply(tf.data.experimental.assert_cardinality(BASKETS))
    .batch(BATCH)
    .prefetch(tf.data.AUTOTUNE)
)

inputs = keras.Input((ARTICLES + 2,))
hidden = keras.layers.Dense(64, activation="relu")(inputs)
hidden = keras.layers.Dense(32, activation="relu")(hidden)
model = keras.Model(inputs, keras.layers.Dense(1, activation="sigmoid")(hidden))
model.compile(optimizer="adam", loss="binary_crossentropy", jit_compile=False)
model.fit(data, epochs=4, verbose=2)
