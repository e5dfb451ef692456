"""Small models that the compiler takes seconds for, yet large enough that size decides fusions."""

import keras
from keras import layers


def compiled(inputs, outputs, name):
    model = keras.Model(inputs, outputs, name=name)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss)
    return model


def block(x, filters, stride, name):
    y = layers.Conv2D(filters, 3, stride, padding="same", use_bias=False, name=f"{name}_conv1")(x)
    y = layers.ReLU(name=f"{name}_relu1")(layers.BatchNormalization(name=f"{name}_norm1")(y))
    y = layers.Conv2D(filters, 3, padding="same", use_bias=False, name=f"{name}_conv2")(y)
    y = layers.BatchNormalization(name=f"{name}_norm2")(y)
    x = layers.Conv2D(filters, 1, stride, use_bias=False, name=f"{name}_short")(x)
    return layers.ReLU(name=f"{name}_out")(layers.Add(name=f"{name}_add")([x, y]))


def cnn():
    x = inputs = keras.Input((128, 128, 3), name="image")
    x = layers.Conv2D(64, 7, 2, padding="same", use_bias=False, name="stem")(x)
    x = layers.ReLU(name="stem_relu")(layers.BatchNormalization(name="stem_norm")(x))
    x = block(block(x, 64, 1, "one"), 128, 2, "two")
    x = layers.GlobalAveragePooling2D(name="pool")(x)
    return compiled(inputs, layers.Dense(10, dtype="float32", name="head")(x), "small_cnn")


def transformer():
    x = inputs = keras.Input((128,), dtype="int32", name="tokens")
    x = layers.Embedding(1000, 256, name="embed")(x)
    for k in range(2):
        y = layers.LayerNormalization(name=f"norm{k}a")(x)
        y = layers.MultiHeadAttention(4, 64, name=f"attention{k}")(y, y)
        x = layers.Add(name=f"add{k}a")([x, y])
        y = layers.LayerNormalization(name=f"norm{k}b")(x)
        y = layers.Dense(1024, "gelu", name=f"up{k}")(y)
        x = layers.Add(name=f"add{k}b")([x, layers.Dense(256, name=f"down{k}")(y)])
    return compiled(
        inputs, layers.Dense(1000, dtype="float32", name="head")(x), "small_transformer"
    )


def wide():
    x = inputs = keras.Input((512, 512, 3), name="image")
    x = layers.Conv2D(64, 3, padding="same", name="conv")(x)
    x = layers.Conv2D(8, 3, 4, padding="same", name="second")(layers.ReLU(name="relu")(x))
    x = layers.GlobalAveragePooling2D(name="pool")(x)
    return compiled(inputs, layers.Dense(10, dtype="float32", name="head")(x), "wide")


def tiny():
    x = inputs = keras.Input((32,), name="features")
    x = layers.Dense(64, "relu", name="hidden")(x)
    return compiled(inputs, layers.Dense(10, name="head")(x), "tiny")


def bert_base():
    x = inputs = keras.Input((384,), dtype="int32", name="tokens")
    x = layers.Embedding(30522, 768, name="embed")(x)
    for k in range(12):
        y = layers.MultiHeadAttention(12, 64, dropout=0.1, name=f"attention{k}")(x, x)
        x = layers.LayerNormalization(name=f"norm{k}a")(layers.Add(name=f"add{k}a")([x, y]))
        y = layers.Dense(768, name=f"down{k}")(layers.Dense(3072, "gelu", name=f"up{k}")(x))
        x = layers.LayerNormalization(name=f"norm{k}b")(layers.Add(name=f"add{k}b")([x, y]))
    return compiled(inputs, layers.Dense(2, dtype="float32", name="span")(x), "bert_base")
