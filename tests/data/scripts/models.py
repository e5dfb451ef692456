"""Small models, one function for each thing that a trace must get right."""

import keras
from keras import layers, ops


def classifier():
    x = inputs = keras.Input((8,))
    x = layers.Dropout(0.5)(layers.BatchNormalization()(layers.Dense(16, activation="relu")(x)))
    model = keras.Model(inputs, layers.Dense(4, activation="softmax")(x), name="classifier")
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def forced_float16():
    keras.mixed_precision.set_global_policy("mixed_float16")
    return classifier()


def uncompiled():
    return keras.Sequential([keras.Input((8,)), layers.Dense(3, activation="softmax")])


def regularised():
    inputs = keras.Input((8,))
    hidden = layers.Dense(5, kernel_regularizer="l2")(inputs)
    model = keras.Model(inputs, layers.Dense(1)(hidden))
    model.compile(keras.optimizers.SGD(0.1), "mse")
    return model


def two_by_two():
    left, right = keras.Input((8,), name="left"), keras.Input((6,), dtype="int32", name="right")
    token = layers.GlobalAveragePooling1D()(layers.Embedding(50, 4, mask_zero=True)(right))
    both = layers.Concatenate()([layers.Dense(4)(left), token])
    kind = layers.Dense(3, name="kind")(both)
    size = layers.Dense(2, name="size")(both)
    model = keras.Model({"left": left, "right": right}, {"kind": kind, "size": size})
    sparse = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("rmsprop", {"kind": sparse, "size": "mse"})
    return model


def open_size():
    inputs = keras.Input((None, None, 3), name="picture")
    x = layers.GlobalAveragePooling2D()(layers.Conv2D(4, 3)(inputs))
    model = keras.Model(inputs, layers.Dense(2)(x))
    model.compile("sgd", "mse")
    return model


def baked():
    inputs = keras.Input(batch_shape=(12, 8))
    model = keras.Model(inputs, layers.Dense(2)(inputs))
    model.compile("sgd", "mse")
    return model


def divisible_by_37():
    inputs = keras.Input((74,))
    model = keras.Model(inputs, layers.Dense(2)(inputs))
    model.compile("sgd", "mse")
    return model


class OwnStep(keras.Model):
    """A training step in the way of Keras' JAX backend: it scales the loss by two."""

    def compute_loss_and_updates(self, *args, **options):
        loss, aux = super().compute_loss_and_updates(*args, **options)
        return 2.0 * loss, aux

    def train_step(self, state, data):
        return super().train_step(state, data)


def own_step():
    inputs = keras.Input((8,))
    model = OwnStep(inputs, layers.Dense(1)(inputs))
    model.compile("sgd", "mse")
    return model


class Unbuilt(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(2)

    def call(self, x):
        return ops.relu(self.dense(x))


def unbuilt():
    model = Unbuilt()
    model.compile("sgd", "mse")
    return model


def broken():
    return keras.Sequential([keras.Input((8,)), layers.Conv2D(3, 3)])


def no_model():
    return 42
