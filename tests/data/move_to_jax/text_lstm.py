"""Sentiment by an LSTM; the text is made numbers in the data set."""

import tensorflow as tf
from tensorflow.keras import layers
from tensorflow.keras.layers import TextVectorization

texts = ["a good film", "a bad film", "very good", "very bad"] * 4
labels = [1, 0, 1, 0] * 4
raw = tf.data.Dataset.from_tensor_slices((texts, labels)).batch(4)


def clean(text):
    lower = tf.strings.lower(text)
    return tf.strings.regex_replace(lower, "<br />", " ")


vectorize = TextVectorization(standardize=clean, max_tokens=20, output_sequence_length=5)
vectorize.adapt(raw.map(lambda text, label: text))
train = raw.map(lambda text, label: (vectorize(text), label)).cache().prefetch(tf.data.AUTOTUNE)

model = tf.keras.Sequential(
    [
        layers.Embedding(20, 8, mask_zero=True),
        layers.Bidirectional(layers.LSTM(4)),
        layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(loss="binary_crossentropy", optimizer="adam", metrics=["accuracy"])
model.fit(train, epochs=1, verbose=0)
