"""A small convolutional network on random pictures: an ordinary Keras script."""

import keras
import numpy as np
from keras import layers

NUM_CLASSES = 10
pictures = np.random.default_rng(0).random((2000, 32, 32, 3), dtype="float32")
labels = np.random.default_rng(1).integers(0, NUM_CLASSES, size=2000)

model = keras.Sequential(
    [
        keras.Input((32, 32, 3)),
        layers.RandomFlip("horizontal"),
        layers.Conv2D(32, 3, padding="same", activation="relu"),
        layers.BatchNormalization(),
        layers.MaxPooling2D(),
        layers.Conv2D(64, 3, padding="same", activation="relu"),
        layers.BatchNormalization(),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dropout(0.5),
        layers.Dense(NUM_CLASSES, activation="softmax"),
    ],
    name="small_cnn",
)

if __name__ == "__main__":
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    history = model.fit(pictures, labels, batch_size=128, epochs=5, validation_split=0.1)
    print("accuracy", history.history["accuracy"][-1])
    model.save("small_cnn.keras")
