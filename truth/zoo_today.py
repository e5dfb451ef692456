"""Models as today's Keras trains them: the builders of ``zoo.py`` with nothing of Keras replaced.

``zoo.py`` gives batch normalisation the statistics in one pass, as the programs of its measurements
had it. Keras 3 itself takes a second pass for the variance; rows measured with it need these
builders. Also the models of ``own/steps.jsonl`` that no published row has, and the published
models of Keras 3 that have batch normalisation.
"""

import sys
from pathlib import Path

import keras
from keras import layers

OWN_MOMENTS = keras.layers.BatchNormalization._moments
if not OWN_MOMENTS.__module__.startswith("keras."):
    raise ImportError("zoo.py was loaded before: trace its models in another process")

sys.path.append(str(Path(__file__).parent))
import zoo
from zoo import *

keras.layers.BatchNormalization._moments = OWN_MOMENTS

# ------------------------------------------------------------------------- own measurements


def lstm_text():
    """Two LSTMs over 200 words, as a text classifier."""
    inputs = keras.Input((200,), dtype="int32", name="token_ids")
    x = layers.Embedding(20000, 128)(inputs)
    x = layers.LSTM(256, return_sequences=True)(x)
    x = layers.LSTM(256)(x)
    return zoo.compiled(inputs, layers.Dense(2)(x), zoo.adam)


def gpt2_small():
    """GPT-2 with 124 million parameters."""
    return zoo.decoder(seq=1024, width=768, depth=12, heads=12, optimizer=zoo.adamw)


def gpt2_medium():
    """GPT-2 with 355 million parameters."""
    return zoo.decoder(seq=1024, width=1024, depth=24, heads=16, optimizer=zoo.adamw)


def mlp():
    """Three dense layers on the pixels of MNIST."""
    x = inputs = keras.Input((784,))
    for _ in range(3):
        x = layers.Dense(512, activation="relu")(x)
    return zoo.compiled(inputs, layers.Dense(10)(x), zoo.adam)


def conv1d_series():
    """Convolutions over a series of twelve channels, as an electrocardiogram has."""
    x = inputs = keras.Input((3000, 12))
    for width in (64, 128, 256, 256):
        x = layers.BatchNormalization()(layers.Conv1D(width, 7, padding="same")(x))
        x = layers.MaxPooling1D(2)(layers.Activation("relu")(x))
    return zoo.compiled(inputs, layers.Dense(5)(layers.GlobalAveragePooling1D()(x)), zoo.adam)


def dcgan_generator():
    """Transposed convolutions from noise to pictures of 64 x 64."""
    inputs = keras.Input((128,))
    x = layers.Reshape((8, 8, 256))(layers.Dense(8 * 8 * 256)(inputs))
    for width in (256, 128, 64):
        x = layers.BatchNormalization()(layers.Conv2DTranspose(width, 4, 2, padding="same")(x))
        x = layers.LeakyReLU()(x)
    x = layers.Conv2D(3, 5, padding="same", activation="tanh")(x)
    return zoo.compiled(inputs, x, zoo.adam, loss="huber")
