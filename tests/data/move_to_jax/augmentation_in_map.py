"""Augmentation by a Sequential of layers, applied in the data set."""

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers, models

augment = tf.keras.Sequential(
    [
        layers.Resizing(16, 16),
        layers.Rescaling(1.0 / 255),
        layers.RandomFlip("horizontal"),
    ]
)

images = np.random.rand(16, 20, 20, 3).astype("float32")
labels = np.random.randint(0, 2, 16)
data = tf.data.Dataset.from_tensor_slices((images, labels)).batch(8)
data = data.map(lambda x, y: (augment(x, training=True), y), num_parallel_calls=2)

model = models.Sequential(
    [
        layers.Input((16, 16, 3)),
        layers.Conv2D(4, 3, activation="relu"),
        layers.Flatten(),
        layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy")
model.fit(data, epochs=1, verbose=0)
