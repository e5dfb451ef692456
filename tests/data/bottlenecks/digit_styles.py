"""An autoencoder of small digits that writes down how its pictures look."""

import json
import tempfile
from pathlib import Path

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(43)
rng = np.random.default_rng(43)
digits = rng.random((2560, 16, 16, 1)).astype("float32")


class Journal(keras.callbacks.Callback):
    """A line for each batch, with what a fixed sample looks like by now."""

    def __init__(self, path, sample):
        super().__init__()
        self.path, self.sample = path, sample

    def on_train_batch_end(self, batch, logs=None):
        drawn = self.model.predict(self.sample, batch_size=32, verbose=0)
        line = {
            "batch": batch,
            "loss": float(logs["loss"]),
            "error": float(np.mean((drawn - self.sample) ** 2)),
            "first": drawn[0, :, :, 0].round(3).tolist(),
        }
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")


encoder = keras.Sequential(
    [
        layers.Conv2D(8, 3, strides=2, padding="same", activation="relu"),
        layers.Conv2D(16, 3, strides=2, padding="same", activation="relu"),
    ]
)
decoder = keras.Sequential(
    [
        layers.Conv2DTranspose(8, 3, strides=2, padding="same", activation="relu"),
        layers.Conv2DTranspose(1, 3, strides=2, padding="same", activation="sigmoid"),
    ]
)
inputs = keras.Input((16, 16, 1))
model = keras.Model(inputs, decoder(encoder(inputs)))
model.compile("adam", "mse", jit_compile=False)
with tempfile.TemporaryDirectory() as folder:
    journal = Journal(Path(folder) / "journal.jsonl", digits[:128])
    model.fit(digits, digits, batch_size=64, epochs=4, callbacks=[journal], verbose=2)
