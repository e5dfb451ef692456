"""Learns from a feed of readings while a monitor keeps counts of what came."""

import collections
import threading

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(25)
rng = np.random.default_rng(25)
readings = rng.normal(size=(32768, 32)).astype("float32")
targets = readings[:, :4].sum(axis=1, keepdims=True)


class Monitor(threading.Thread):
    """Counts readings by their rounded value, all the time."""

    def __init__(self, rows):
        super().__init__(daemon=True)
        self.rows = rows[:512].round(1).tolist()
        self.counts = collections.Counter()
        self.ended = False

    def run(self):
        while not self.ended:
            for row in self.rows:
                for value in row:
                    self.counts[value] += 1
            self.common = sorted(self.counts, key=self.counts.get)[:20]


monitor = Monitor(readings)
monitor.start()
model = keras.Sequential(
    [
        keras.Input((32,)),
        keras.layers.Dense(48, activation="relu"),
        keras.layers.Dense(48, activation="relu"),
        keras.layers.Dense(1),
    ]
)
model.compile(optimizer="adam", loss="mae", jit_compile=False)
data = tf.data.Dataset.from_tensor_slices((readings, targets))
data = data.batch(128).cache().shuffle(256).prefetch(tf.data.AUTOTUNE)
model.fit(data, epochs=4, verbose=2)
monitor.ended = True
print("most common:", monitor.counts.most_common(3))
