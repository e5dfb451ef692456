"""Builders of steps that are measured today: those of ``zoo.py`` as Keras 3 runs them, and more.

``zoo.py`` gives its models the batch normalisation of the published programs, whose statistics take
one pass. Here they keep Keras' own, with a second pass for the variance. The other builders are
kinds of models that no published TensorFlow measurement has.
"""

import keras
from keras import layers

_OWN = keras.layers.BatchNormalization._moments

import zoo  # noqa: E402 (it changes batch normalisation, which is undone below)

keras.layers.BatchNormalization._moments = _OWN

from zoo import *  # noqa: E402, F403


def lstm_text() -> keras.Model:
    """Two LSTMs over embedded words."""
    inputs = keras.Input((200,), dtype="int32", name="token_ids")
    x = layers.Embedding(20000, 128)(inputs)
    x = layers.LSTM(256, return_sequences=True)(x)
    x = layers.LSTM(256)(x)
    return zoo.compiled(inputs, layers.Dense(2)(x), zoo.adam)


def gru_text() -> keras.Model:
    """Two GRUs over embedded words, the first in both directions."""
    inputs = keras.Input((200,), dtype="int32", name="token_ids")
    x = layers.Embedding(20000, 128)(inputs)
    x = layers.Bidirectional(layers.GRU(128, return_sequences=True))(x)
    x = layers.GRU(256)(x)
    return zoo.compiled(inputs, layers.Dense(2)(x), zoo.adam)


def gpt2_small() -> keras.Model:
    """GPT-2 of 124 million weights."""
    return zoo.decoder(seq=1024, width=768, depth=12, heads=12, optimizer=zoo.adamw)


def gpt2_medium() -> keras.Model:
    """GPT-2 of 355 million weights."""
    return zoo.decoder(seq=1024, width=1024, depth=24, heads=16, optimizer=zoo.adamw)


def mlp() -> keras.Model:
    """Three dense layers: a step that is all overhead."""
    x = inputs = keras.Input((784,))
    for _ in range(3):
        x = layers.Dense(512, activation="relu")(x)
    return zoo.compiled(inputs, layers.Dense(10)(x), zoo.adam)


def conv1d_series() -> keras.Model:
    """One-dimensional convolutions over twelve channels (an electrocardiogram)."""
    x = inputs = keras.Input((3000, 12))
    for width in (64, 128, 256, 256):
        x = layers.BatchNormalization()(layers.Conv1D(width, 7, padding="same")(x))
        x = layers.MaxPooling1D(2)(layers.Activation("relu")(x))
    return zoo.compiled(inputs, layers.Dense(5)(layers.GlobalAveragePooling1D()(x)), zoo.adam)


def dcgan_generator() -> keras.Model:
    """The generator of a DCGAN: transposed convolutions up to 64x64."""
    inputs = keras.Input((128,))
    x = layers.Reshape((8, 8, 256))(layers.Dense(8 * 8 * 256)(inputs))
    for width in (256, 128, 64):
        x = layers.Conv2DTranspose(width, 4, 2, padding="same")(x)
        x = layers.LeakyReLU()(layers.BatchNormalization()(x))
    image = layers.Conv2D(3, 5, padding="same", activation="tanh")(x)
    return zoo.compiled(inputs, image, zoo.adam, loss="huber")


def recommender() -> keras.Model:
    """Embedding tables, their pairwise products and dense layers (DLRM)."""
    numbers = keras.Input((13,), name="numbers")
    tables = [keras.Input((1,), dtype="int32", name=f"cat_{i}") for i in range(26)]
    x = layers.Dense(64, activation="relu")(layers.Dense(512, activation="relu")(numbers))
    rows = [layers.Reshape((1, 64))(x), *(layers.Embedding(100_000, 64)(t) for t in tables)]
    stacked = layers.Concatenate(axis=1)(rows)
    products = layers.Flatten()(layers.Dot(axes=2)([stacked, stacked]))
    y = layers.Concatenate()([x, products])
    for width in (1024, 512, 256):
        y = layers.Dense(width, activation="relu")(y)
    return zoo.compiled([numbers, *tables], layers.Dense(2)(y), zoo.plain_sgd)


def densenet121_224() -> keras.Model:
    """Every layer concatenates all before it."""
    return zoo.application(224, "DenseNet121")
