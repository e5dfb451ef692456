"""Heart rate from light at the wrist; keeps an eye on the weights."""

import keras
import numpy as np
from keras import layers

rng = np.random.default_rng(41)
keras.utils.set_random_seed(41)
light = rng.normal(size=(4096, 200, 2)).cumsum(axis=1).astype("float32")
rates = rng.uniform(50, 160, (4096, 1)).astype("float32")


class Watch(keras.callbacks.Callback):
    """Tells how the weights spread, and which of them are nearly nothing."""

    def on_train_begin(self, logs=None):
        self.spread = {}

    def on_train_batch_end(self, batch, logs=None):
        for weight in self.model.trainable_weights:
            values = np.abs(weight.numpy()).ravel()
            counts, edges = np.histogram(values, bins=100)
            self.spread[weight.path] = {
                "counts": counts.tolist(),
                "edges": edges.tolist(),
                "middle": float(np.median(values)),
                "idle": sum(1 for value in values.tolist() if value < 1e-3),
            }


model = keras.Sequential(
    [
        keras.Input((200, 2)),
        layers.Conv1D(16, 9, strides=4, activation="relu"),
        layers.Conv1D(32, 5, strides=2, activation="relu"),
        layers.Flatten(),
        layers.Dense(256, activation="relu"),
        layers.Dense(1),
    ]
)
model.compile(optimizer="adam", loss="mae", jit_compile=False)
watch = Watch()
model.fit(light, rates, batch_size=64, epochs=3, callbacks=[watch], verbose=2)
print({path: found["idle"] for path, found in watch.spread.items()})
