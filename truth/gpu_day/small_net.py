"""A small convolutional network on made-up pictures, which is trained, exported and served."""

import keras
import numpy as np
from keras import layers

CLASSES, SIDE, SAMPLES, BATCH = 10, 32, 2048, 128

rng = np.random.default_rng(0)
pictures = rng.standard_normal((SAMPLES, SIDE, SIDE, 3), dtype="float32")
labels = rng.integers(0, CLASSES, SAMPLES).astype("int32")

keras.utils.set_random_seed(1)
model = keras.Sequential(
    [
        keras.Input((SIDE, SIDE, 3)),
        layers.Conv2D(32, 3, padding="same", activation="relu"),
        layers.BatchNormalization(),
        layers.MaxPooling2D(),
        layers.Conv2D(64, 3, padding="same", activation="relu"),
        layers.BatchNormalization(),
        layers.GlobalAveragePooling2D(),
        layers.Dense(CLASSES),
    ],
    name="small_net",
)
model.compile(
    optimizer=keras.optimizers.SGD(0.05, momentum=0.9),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
)
model.fit(pictures, labels, batch_size=BATCH, epochs=3, verbose=0)
