"""A transformer that classifies sequences of tokens, with a padding mask from the embedding."""

import argparse

import keras
import numpy as np
from keras import layers


def build(vocabulary, length, width=128, heads=4, depth=2):
    tokens = keras.Input((length,), dtype="int32", name="tokens")
    x = layers.Embedding(vocabulary, width, mask_zero=True)(tokens)
    for _ in range(depth):
        y = layers.MultiHeadAttention(heads, width // heads)(x, x)
        x = layers.LayerNormalization()(layers.Add()([x, y]))
        y = layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(x))
        x = layers.LayerNormalization()(layers.Add()([x, layers.Dropout(0.1)(y)]))
    x = layers.GlobalAveragePooling1D()(x)
    return keras.Model(tokens, layers.Dense(2)(x), name="token_transformer")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=64)
    options = parser.parse_args()
    tokens = np.random.default_rng(0).integers(1, 5000, size=(10_000, options.length))
    labels = np.random.default_rng(1).integers(0, 2, size=10_000)
    model = build(5000, options.length)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(1e-4), loss=loss, metrics=["accuracy"])
    model.fit(tokens, labels, batch_size=options.batch_size, epochs=3)


if __name__ == "__main__":
    main()
