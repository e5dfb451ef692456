"""Learns the digits from converted records with a small network."""

import argparse
import sys

import keras

parser = argparse.ArgumentParser()
parser.add_argument("--records", required=True)
sys.path.insert(0, parser.parse_args().records)
from read_dataset import CLASSES, read  # noqa: E402  (it lies beside the records)

model = keras.Sequential(
    [
        keras.Input((8, 8, 3), name="image"),
        keras.layers.Rescaling(1 / 255),
        keras.layers.Conv2D(32, 3, activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(len(CLASSES), activation="softmax", name="digit"),
    ],
    name="digits",
)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(read(batch_size=32, image_size=(8, 8)), epochs=12)
