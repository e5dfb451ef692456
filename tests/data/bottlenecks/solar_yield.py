"""Power of a solar park from the weather of the last days."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)

HOURS, FIELDS = 96, 24


def weather(days):
    rng = np.random.default_rng(22)
    sun = np.sin(np.linspace(0, 4 * np.pi, HOURS))[None, :, None]
    fields = sun * rng.random((days, 1, FIELDS)) + rng.normal(size=(days, HOURS, FIELDS))
    return fields.reshape(days, -1).astype("float32"), fields[..., :1].mean(1).astype("float32")


keras.utils.set_random_seed(22)
x, y = weather(5120)
model = keras.Sequential(
    [
        keras.Input((HOURS * FIELDS,)),
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(1),
    ]
)
model.compile(keras.optimizers.SGD(0.01, momentum=0.9), "mse", jit_compile=False)
model.fit(x, y, batch_size=512, epochs=12, verbose=2)
