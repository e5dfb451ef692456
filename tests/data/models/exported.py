"""Models that the tests of export convert, each small and trained for a few steps where it says."""

import keras
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits


def _digits():
    digits = load_digits()
    images = (digits.images[..., None] / 16.0).astype("float32")
    return images[:1400], digits.target[:1400], images[1400:], digits.target[1400:]


def cnn():
    """Trained on scikit-learn's digits until it is right about 9 times in 10."""
    keras.utils.set_random_seed(7)
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1), name="image"),
            keras.layers.Conv2D(16, 3, padding="same"),
            keras.layers.BatchNormalization(),
            keras.layers.ReLU(),
            keras.layers.MaxPooling2D(),
            keras.layers.Dropout(0.2),
            keras.layers.Flatten(),
            keras.layers.Dense(10, activation="softmax"),
        ],
        name="digits",
    )
    x, y, _, _ = _digits()
    model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy")
    model.fit(x, y, batch_size=64, epochs=4, verbose=0)
    return model


def held_out():
    """Rows and classes that the training has not seen."""
    _, _, x, y = _digits()
    return x, y


def batches():
    """The same as tf.data."""
    return tf.data.Dataset.from_tensor_slices(held_out()).batch(100)


def pixels():
    """The same rows as bytes, as a client would send them."""
    _, _, x, y = _digits()
    return (x * 16).astype("uint8"), y


def scaled(image):
    """Preprocessing: bytes to what the model takes."""
    return tf.cast(image, tf.float32) / 16.0


def named(scores):
    """Postprocessing: the class and how sure."""
    return {"digit": tf.argmax(scores, axis=-1), "sure": tf.reduce_max(scores, axis=-1)}


def text():
    """Words are looked up inside."""
    words = keras.Input((4,), dtype="string", name="review")
    numbers = keras.layers.StringLookup(vocabulary=["good", "bad", "film"], name="words")(words)
    x = keras.layers.Embedding(5, 4, name="vectors")(numbers)
    x = keras.layers.GlobalAveragePooling1D()(x)
    return keras.Model(words, keras.layers.Dense(2, name="mood")(x), name="moods")


def sentences():
    """Sentences are split inside."""
    split = keras.layers.TextVectorization(
        vocabulary=["good", "bad", "film"], output_sequence_length=4, name="split"
    )
    given = keras.Input((), dtype="string", name="sentence")
    x = keras.layers.Embedding(6, 4)(split(given))
    x = keras.layers.GlobalAveragePooling1D()(x)
    return keras.Model(given, keras.layers.Dense(2)(x), name="sentences")


def several():
    """Two inputs by name, two outputs by name."""
    given = {"age": keras.Input((1,), name="age"), "face": keras.Input((6, 6, 1), name="face")}
    x = keras.layers.Flatten()(given["face"])
    x = keras.layers.Concatenate()([x, given["age"]])
    outputs = {
        "kind": keras.layers.Dense(3, activation="softmax", name="kind")(x),
        "price": keras.layers.Dense(1, name="price")(x),
    }
    return keras.Model(given, outputs, name="several")


def half():
    """Computes in float16, its weights are float32."""
    policy = keras.DTypePolicy("mixed_float16")
    return keras.Sequential(
        [
            keras.Input((8, 8, 1), name="image"),
            keras.layers.Conv2D(8, 3, dtype=policy),
            keras.layers.Flatten(),
            keras.layers.Dense(10, activation="softmax", dtype="float32"),
        ],
        name="half",
    )


def brain():
    """The same in bfloat16."""
    policy = keras.DTypePolicy("mixed_bfloat16")
    return keras.Sequential(
        [
            keras.Input((8, 8, 1), name="image"),
            keras.layers.Conv2D(8, 3, dtype=policy, name="conv"),
            keras.layers.Flatten(),
            keras.layers.Dense(10, dtype="float32"),
        ],
        name="brain",
    )


@keras.saving.register_keras_serializable("tests")
class Scale(keras.layers.Layer):
    """A layer of one's own."""

    def build(self, shape):
        self.factor = self.add_weight(shape=(shape[-1],), initializer="ones")

    def call(self, x):
        return keras.ops.tanh(x) * self.factor


def own_layer():
    return keras.Sequential(
        [keras.Input((4,), name="row"), Scale(name="scale"), keras.layers.Dense(2)], name="own"
    )


def python_inside():
    """Calls Python in its graph."""

    class Doubled(keras.layers.Layer):
        def call(self, x):
            return tf.ensure_shape(tf.py_function(lambda v: v * 2, [x], tf.float32), x.shape)

        def compute_output_shape(self, shape):
            return shape

    return keras.Sequential([keras.Input((4,)), Doubled(name="doubled")], name="python_inside")


def with_lambda():
    return keras.Sequential(
        [keras.Input((4,), name="row"), keras.layers.Lambda(lambda x: x * 2, name="twice")],
        name="with_lambda",
    )


class Never(keras.Model):
    """Nothing says what it takes until it is called."""

    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(2)

    def call(self, x):
        return self.dense(x)


def never_called():
    return Never()


def rows():
    return np.random.default_rng(0).normal(size=(20, 4)).astype("float32")


def sequence():
    """An LSTM over any number of steps."""
    given = keras.Input((None, 3), name="steps")
    return keras.Model(given, keras.layers.LSTM(4)(given), name="sequence")


def random_weights_bad():
    """Its outputs are no numbers."""
    model = keras.Sequential([keras.Input((4,), name="row"), keras.layers.Dense(2)], name="nan")
    model.layers[0].kernel.assign(np.full((4, 2), np.nan, "float32"))
    return model


def nothing():
    return "no model"
