"""Data sets that do not say how long their windows are, and models that say it or do not."""

import keras
import numpy as np
import tensorflow as tf

STEPS, BATCH = 20, 16
SERIES = np.sin(np.arange(400 * 3) / 10).astype("float32").reshape(400, 3)


def timeseries(**options):
    return keras.utils.timeseries_dataset_from_array(
        SERIES[:-STEPS], SERIES[STEPS:, :1], sequence_length=STEPS, batch_size=BATCH, **options
    )


def compiled(model):
    model.compile("adam", "mse")
    return model


def with_input():
    x = keras.Input((STEPS, 3))
    return compiled(keras.Model(x, keras.layers.Dense(1)(keras.layers.Flatten()(x)))), timeseries()


def without_input():
    layers = [keras.layers.Conv1D(8, 3), keras.layers.GlobalMaxPooling1D(), keras.layers.Dense(1)]
    return compiled(keras.Sequential(layers)), timeseries()


def in_sequence():
    """Windows by ``window`` and ``flat_map``: inputs, targets and batch are all open."""
    data = tf.data.Dataset.from_tensor_slices(SERIES)
    data = data.window(STEPS + 1, shift=1, drop_remainder=True)
    data = data.flat_map(lambda window: window.batch(STEPS + 1))
    data = data.map(lambda window: (window[:-1], window[1:, :1])).batch(BATCH).prefetch(1)
    layers = [keras.Input((None, 3)), keras.layers.Conv1D(8, 3, padding="same")]
    return compiled(keras.Sequential([*layers, keras.layers.Dense(1)])), data


def of_a_generator():
    """Batches of a generator, and a step that TensorFlow alone can trace."""

    def batches():
        for start in range(0, 64, BATCH):
            yield SERIES[start : start + BATCH, None, :].repeat(STEPS, 1), SERIES[:BATCH, 0]

    kinds = (tf.TensorSpec((None, None, 3)), tf.TensorSpec((None,)))
    data = tf.data.Dataset.from_generator(batches, output_signature=kinds)
    x = keras.Input((STEPS, 3))
    flat = keras.layers.Lambda(lambda x: tf.reshape(x, (-1, STEPS * 3)), (STEPS * 3,))(x)
    return compiled(keras.Model(x, keras.layers.Dense(1)(flat))), data


def by_name():
    """Two windows by the names of the inputs, which the model has in another order."""
    past, extra = (
        keras.utils.timeseries_dataset_from_array(part, None, STEPS, batch_size=BATCH)
        for part in (SERIES, SERIES[:, :2])
    )
    data = tf.data.Dataset.zip((past, extra))
    data = data.map(lambda p, e: ({"past": p, "extra": e}, p[:, -1, :1]))
    inputs = [keras.Input((STEPS, 2), name="extra"), keras.Input((STEPS, 3), name="past")]
    flat = [keras.layers.Flatten()(part) for part in inputs]
    outputs = keras.layers.Dense(1)(keras.layers.Concatenate()(flat))
    return compiled(keras.Model(inputs, outputs)), data


def of_any_rank():
    """A generator that says nothing of its shapes: Keras does not train on that."""
    data = tf.data.Dataset.from_generator(lambda: iter([]), output_types=tf.float32)
    return with_input()[0], data
