"""Speed of a vehicle from depth profiles; a rig plays back what was recorded, in its own time."""

import time

import keras
import numpy as np
import tensorflow as tf
from keras import layers

STEPS, BEAMS, BATCH = 60, 16, 32


class Rig:
    """Gives a batch of profiles every 25 ms."""

    def __init__(self, batches, period_s=0.025):
        rng = np.random.default_rng(4)
        self.profiles = rng.normal(size=(batches, BATCH, STEPS, BEAMS)).astype("float32")
        self.speeds = self.profiles.mean(axis=(2, 3))[..., None]
        self.period_s = period_s

    def play(self):
        for profiles, speeds in zip(self.profiles, self.speeds):
            time.sleep(self.period_s)
            yield profiles, speeds


keras.utils.set_random_seed(4)
rig = Rig(batches=40)
options = tf.data.Options()
options.autotune.enabled = False
data = tf.data.Dataset.from_generator(
    rig.play,
    output_signature=(
        tf.TensorSpec((BATCH, STEPS, BEAMS), tf.float32),
        tf.TensorSpec((BATCH, 1), tf.float32),
    ),
)
data = data.map(lambda x, y: (tf.clip_by_value(x, -3.0, 3.0), y)).with_options(options)

model = keras.Sequential(
    [
        keras.Input((STEPS, BEAMS)),
        layers.GRU(40, return_sequences=True),
        layers.GRU(40),
        layers.Dense(1),
    ]
)
model.compile(optimizer="rmsprop", loss="mse", jit_compile=False)
model.fit(data, epochs=5, verbose=2)
