"""A CNN whose pictures come from tf.data; augmentation is part of the model."""

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

AUTOTUNE = tf.data.AUTOTUNE
tf.random.set_seed(1)


def prepare(image, label):
    image = tf.cast(image, tf.float32) / 255.0
    image = tf.image.resize(image, (16, 16))
    image = tf.image.random_brightness(image, 0.1)
    return image, tf.one_hot(label, 3)


images = np.random.randint(0, 255, (32, 20, 20, 3)).astype("uint8")
labels = np.random.randint(0, 3, 32)
train = tf.data.Dataset.from_tensor_slices((images, labels))
train = train.shuffle(32).map(prepare, num_parallel_calls=AUTOTUNE).batch(8).prefetch(AUTOTUNE)

data_augmentation = keras.Sequential(
    [
        layers.RandomFlip("horizontal"),
        layers.RandomRotation(0.1),
    ]
)
inputs = keras.Input(shape=(16, 16, 3))
x = data_augmentation(inputs)
x = layers.Conv2D(4, 3, activation="relu")(x)
x = layers.BatchNormalization()(x)
x = layers.GlobalAveragePooling2D()(x)
outputs = layers.Dense(3, activation="softmax")(x)
model = keras.Model(inputs, outputs)
model.compile("adam", "categorical_crossentropy", metrics=["accuracy"])
model.fit(train, epochs=1, verbose=0)
