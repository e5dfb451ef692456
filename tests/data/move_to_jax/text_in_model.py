"""Sentiment by a model that takes the text itself."""

import numpy as np
import tensorflow as tf
from tensorflow import keras

vectorize = keras.layers.TextVectorization(max_tokens=20, output_sequence_length=5)
texts = tf.constant(["a good film", "a bad film", "very good", "very bad"])
vectorize.adapt(texts)

model = keras.Sequential(
    [
        keras.Input(shape=(1,), dtype=tf.string),
        vectorize,
        keras.layers.Embedding(20, 8),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(loss="binary_crossentropy", optimizer="adam")
model.fit(texts[:, None], np.array([1, 0, 1, 0]), epochs=1, verbose=0)
