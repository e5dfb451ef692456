"""Slices of a scan, read with a Keras dataset class."""

import tempfile

import keras
import numpy as np
from keras import layers

SIDE, BATCH, SLICES = 64, 16, 640


class Slices(keras.utils.PyDataset):
    """Turns, mirrors and normalises what it gives."""

    def __init__(self, path, **options):
        super().__init__(**options)
        with np.load(path) as stored:
            self.slices, self.labels = stored["slices"], stored["labels"]
        self.rng = np.random.default_rng(9)

    def __len__(self):
        return len(self.slices) // BATCH

    def __getitem__(self, index):
        batch = []
        for raw in self.slices[index * BATCH : (index + 1) * BATCH]:
            picture = raw.astype("float32")
            low, high = np.percentile(picture, (1, 99))
            scaled = np.clip((picture - low) / (high - low), 0, 1)
            padded = np.pad(scaled, 1, mode="edge")
            smooth = np.zeros_like(scaled)
            for row in range(SIDE):
                for column in range(0, SIDE, 8):
                    patch = padded[row : row + 3, column : column + 10]
                    smooth[row, column : column + 8] = (patch[:, :-2] + patch[:, 1:-1]).mean(0)
            batch.append(np.rot90(smooth, self.rng.integers(4)))
        labels = self.labels[index * BATCH : (index + 1) * BATCH]
        return np.stack(batch)[..., None], labels


keras.utils.set_random_seed(9)
rng = np.random.default_rng(9)
with tempfile.NamedTemporaryFile(suffix=".npz") as file:
    slices = rng.integers(0, 4096, (SLICES, SIDE, SIDE)).astype("uint16")
    np.savez(file.name, slices=slices, labels=rng.integers(0, 2, SLICES).astype("float32"))
    data = Slices(file.name)

inputs = keras.Input((SIDE, SIDE, 1))
x = layers.Conv2D(8, 3, strides=2, activation="relu")(inputs)
x = layers.Conv2D(16, 3, strides=2, activation="relu")(x)
outputs = layers.Dense(1, activation="sigmoid")(layers.Flatten()(x))
model = keras.Model(inputs, outputs)
model.compile(optimizer="adam", loss="binary_crossentropy", jit_compile=False)
model.fit(data, epochs=4, verbose=2)
