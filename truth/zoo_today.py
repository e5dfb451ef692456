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


def gru_text():
    """Two GRUs over embedded words, the first in both directions."""
    inputs = keras.Input((200,), dtype="int32", name="token_ids")
    x = layers.Embedding(20000, 128)(inputs)
    x = layers.Bidirectional(layers.GRU(128, return_sequences=True))(x)
    x = layers.GRU(256)(x)
    return zoo.compiled(inputs, layers.Dense(2)(x), zoo.adam)


def recommender():
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


def densenet121_224():
    """Every layer concatenates all before it."""
    return zoo.application(224, "DenseNet121")


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


# ------------------------------------------------------- published measurements of Keras 3


def trained(inputs, outputs, loss, metrics=()):
    """A model compiled with Adam, as the scripts of these measurements have it."""
    outputs = layers.Activation("linear", dtype="float32")(outputs)
    model = keras.Model(inputs, outputs)
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=loss, metrics=list(metrics))
    return model


def focal():
    """Focal loss of two classes, as the logs of smartbugs have it."""
    return keras.losses.BinaryFocalCrossentropy(alpha=0.25, gamma=2.0)


def mlp_10x128():
    """Ten dense layers with dropout on four features (keras issue 19953)."""
    x = inputs = keras.Input((4,))
    for _ in range(10):
        x = layers.Dropout(0.1)(layers.Dense(128, activation="relu")(x))
    x = layers.Dense(1, activation="sigmoid")(x)
    loss = keras.losses.BinaryCrossentropy(label_smoothing=0.05)
    return trained(inputs, x, loss, [keras.metrics.AUC()])


def vgg16_cifar100():
    """VGG16 on 32 x 32 with dropout after each pooling, without batch normalisation."""
    x = inputs = keras.Input((32, 32, 3))
    for filters, depth in zip((64, 128, 256, 512, 512), (2, 2, 3, 3, 3), strict=True):
        for _ in range(depth):
            x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        x = layers.Dropout(0.3)(layers.MaxPooling2D(2)(x))
    x = layers.Flatten()(x)
    for _ in range(2):
        x = layers.Dense(4096, activation="relu")(x)
    x = layers.Dense(100, activation="softmax")(x)
    return trained(inputs, x, "sparse_categorical_crossentropy", ["accuracy"])


def unet_lstm(penalty=None):
    """U-Net with two LSTMs over its lowest level and skips from two levels (scheemik/unox)."""
    shared = {"activity_regularizer": keras.regularizers.L1(penalty) if penalty else None}

    def conv2(x, first, second):
        for filters in (first, second):
            x = layers.Conv2D(filters, 3, padding="same", activation="softplus", **shared)(x)
        return x

    def up(x, filters):
        return layers.Conv2DTranspose(filters, 2, 2, padding="same", **shared)(x)

    def middle(x):
        return layers.Cropping2D((x.shape[1] // 4, x.shape[2] // 4))(x)

    inputs = keras.Input((56, 120, 9))
    c1 = conv2(inputs, 128, 256)
    c2 = conv2(layers.MaxPooling2D(2)(c1), 256, 512)
    c3 = conv2(layers.MaxPooling2D(2)(c2), 512, 1024)
    x = conv2(layers.MaxPooling2D(2)(c3), 1024, 1024)
    x = layers.Reshape((1024, 105))(layers.Permute((3, 1, 2))(x))
    x = layers.Permute((2, 1))(x)
    for _ in range(2):
        x = layers.LSTM(1024, return_sequences=True, **shared)(x)
    x = up(layers.Reshape((7, 15, 1024))(x), 512)
    x = conv2(layers.Concatenate()([x, c3, middle(c2)]), 256, 256)
    x = conv2(layers.Concatenate()([up(x, 256), c2, middle(c1)]), 128, 128)
    x = conv2(layers.Concatenate()([up(x, 128), c1]), 64, 64)
    x = layers.Conv2D(1, 1, activation="softplus", **shared)(x)
    return trained(inputs, x, "mse")


def unet_lstm_56x120():
    """The network without a penalty on its activations."""
    return unet_lstm()


def unet_lstm_56x120_penalty():
    """The network with a penalty on the activations of every layer."""
    return unet_lstm(1e-4)


def unet_levels(x, kernels, pool, wide=2, normed=0, dropout=0.0):
    """Three levels of convolutions and back, one convolution each."""
    skips = []
    for level, kernel in enumerate(kernels):
        x = layers.Conv2D(64 << level, kernel, padding="same", activation="relu")(x)
        x = layers.BatchNormalization()(x) if level < normed else x
        skips.append(x)
        x = layers.MaxPooling2D(pool)(x) if level < wide else x
    x = layers.SpatialDropout2D(dropout)(x) if dropout else x
    for level in reversed(range(wide)):
        x = layers.Concatenate()([skips[level], layers.UpSampling2D(pool)(x)])
        x = layers.Conv2D(64 << level, kernels[level], padding="same", activation="relu")(x)
    return x


def unet_small_100x1():
    """The branch of a detector that sees 100 x 100 maps (smartbugs, 2026-07)."""
    inputs = keras.Input((100, 100, 1))
    x = layers.GlobalAveragePooling2D()(unet_levels(inputs, (3, 3, 3), (2, 2)))
    x = layers.Dense(64, activation="relu")(layers.Dense(128, activation="relu")(x))
    return trained(inputs, layers.Dense(1, activation="sigmoid")(x), focal(), ["accuracy"])


def unet_small_100x3():
    """The same with three channels, two poolings and dropout (2026-08)."""
    inputs = keras.Input((100, 100, 3))
    x = unet_levels(inputs, (3, 3, 3), (2, 2), dropout=0.3)
    pooled = [layers.GlobalAveragePooling2D()(x), layers.GlobalMaxPooling2D()(x)]
    x = layers.Dense(128, activation="relu")(layers.Concatenate()(pooled))
    x = layers.Dense(64, activation="relu", kernel_regularizer="l2")(layers.Dropout(0.3)(x))
    return trained(inputs, layers.Dense(1, activation="sigmoid")(x), focal(), ["accuracy"])


def lstm_both_ways_100x300():
    """Two LSTMs in both directions over 100 vectors (smartbugs)."""
    inputs = keras.Input((100, 300))
    x = layers.Bidirectional(layers.LSTM(128, return_sequences=True))(inputs)
    x = layers.Bidirectional(layers.LSTM(64))(layers.Dropout(0.5)(x))
    return trained(inputs, layers.Dense(1, activation="sigmoid")(x), focal(), ["accuracy"])


def unet_lstm_50x300():
    """A U-Net whose map of 50 x 300 two LSTMs read in both directions (smartbugs, 2025-01)."""
    inputs = keras.Input((50, 300, 1))
    x = unet_levels(inputs, ((3, 5), (3, 7), (3, 7)), (1, 2), normed=2)
    x = layers.Reshape((50, 300))(layers.Conv2D(1, 1, activation="sigmoid")(x))
    x = layers.Bidirectional(layers.LSTM(128, return_sequences=True))(x)
    x = layers.Bidirectional(layers.LSTM(64))(x)
    x = layers.Dense(64, activation="relu")(layers.Dense(128, activation="relu")(x))
    x = layers.Dense(1, activation="sigmoid")(x)
    return trained(inputs, x, "binary_crossentropy", ["accuracy"])


def efficientnet_b3_256():
    """EfficientNet-B3 below a classifier of 74 aircraft (0xRyN)."""
    body = keras.applications.EfficientNetB3(
        include_top=False, weights=None, input_shape=(256, 256, 3), pooling="max"
    )
    x = layers.BatchNormalization()(body.outputs[0])
    x = layers.Dense(256, activation="relu", kernel_regularizer=keras.regularizers.L2(0.01))(x)
    x = layers.Dense(74, activation="softmax")(layers.Dropout(0.2)(x))
    return trained(body.inputs, x, "sparse_categorical_crossentropy", ["accuracy"])
