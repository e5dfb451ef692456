"""Three trainings on scanned digits: arrays, a pipeline of tf.data, and Python that draws at random.

``python long_training.py arrays pipeline python``; writes what was learned to learned.json. For
tests of kills it can be slowed down (PACE_S: seconds for each batch) and tells where it is, a line
for each moment, in the file MOMENTS.
"""

import json
import os
import random
import sys
import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

EPOCHS, BATCH, TRAIN = 6, 64, 1280
images, labels = load_digits(return_X_y=True)
images = (images / 16).astype("float32").reshape(-1, 8, 8, 1)
labels = labels.astype("int32")
held_out = (images[TRAIN:], labels[TRAIN:])


class Moments(keras.callbacks.Callback):
    """Tells where the training is, and gives a kill the time to come."""

    def __init__(self, name):
        super().__init__()
        self.name, self.pace_s = name, float(os.environ.get("PACE_S", "0"))

    def tell(self, moment):
        if path := os.environ.get("MOMENTS"):
            with Path(path).open("a") as file:
                file.write(f"{self.name} {moment}\n")
        time.sleep(self.pace_s)

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch
        self.tell(f"between {epoch}")

    def on_train_batch_end(self, batch, logs=None):
        self.tell(f"at {self.epoch} {batch}")

    def on_test_batch_begin(self, batch, logs=None):
        self.tell(f"validation {self.epoch}")

    def on_epoch_end(self, epoch, logs=None):
        self.tell(f"end {epoch}")


class Noisy(keras.utils.PyDataset):
    """Batches in an order and with noise that Python and numpy draw."""

    def __init__(self):
        super().__init__()
        self.order = list(range(TRAIN))
        random.shuffle(self.order)

    def __len__(self):
        return TRAIN // BATCH

    def __getitem__(self, index):
        chosen = self.order[index * BATCH : (index + 1) * BATCH]
        shift = random.choice([-1, 0, 1])
        noise = np.random.normal(scale=0.05, size=(BATCH, 8, 8, 1))
        return np.roll(images[chosen], shift, axis=2) + noise.astype("float32"), labels[chosen]

    def on_epoch_end(self):
        random.shuffle(self.order)


def jittered(image, label):
    bright = tf.random.uniform((), 0.8, 1.2)
    return tf.image.random_flip_left_right(image) * bright, label


def network():
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            keras.layers.Conv2D(16, 3, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Flatten(),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dropout(0.3),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    loss = "sparse_categorical_crossentropy"
    model.compile(keras.optimizers.Adam(3e-3), loss, metrics=["accuracy"])
    return model


def train(name):
    model = network()
    if name == "arrays":
        data = {"x": images[:TRAIN], "y": labels[:TRAIN], "batch_size": BATCH}
    elif name == "pipeline":
        pairs = tf.data.Dataset.from_tensor_slices((images[:TRAIN], labels[:TRAIN]))
        data = {"x": pairs.shuffle(TRAIN).map(jittered).batch(BATCH).prefetch(2)}
    else:
        data = {"x": Noisy()}
    slower = keras.callbacks.ReduceLROnPlateau(patience=0, factor=0.5, min_delta=0.12)
    callbacks = [slower, Moments(name)]
    history = model.fit(**data, epochs=EPOCHS, validation_data=held_out, callbacks=callbacks)
    return {"history": history.history, "score": model.evaluate(*held_out, verbose=0)}


Path("learned.json").write_text(json.dumps({name: train(name) for name in sys.argv[1:]}))
