"""Which bird? Recordings of one second."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

RATE, BIRDS, BATCH = 16000, 12, 32
keras.utils.set_random_seed(6)
rng = np.random.default_rng(6)
time = np.arange(RATE) / RATE
pitches = rng.uniform(500, 4000, BIRDS)
birds = rng.integers(0, BIRDS, 640)
sounds = np.sin(2 * np.pi * pitches[birds][:, None] * time) + rng.normal(size=(640, RATE))
sounds = sounds.astype("float32")
mel = tf.signal.linear_to_mel_weight_matrix(40, 513, RATE)


def features(sound, bird):
    spectrum = tf.signal.stft(sound, frame_length=1024, frame_step=64)
    energy = tf.tensordot(tf.abs(spectrum) ** 2, mel, 1)
    loudness = tf.math.log(energy + 1e-6)
    loudness = loudness - tf.reduce_mean(loudness, axis=0)
    return tf.image.resize(loudness[..., None], (64, 40)), bird


data = tf.data.Dataset.from_tensor_slices((sounds, birds))
data = data.map(features, num_parallel_calls=tf.data.AUTOTUNE)
data = data.shuffle(640).batch(BATCH).prefetch(tf.data.AUTOTUNE)

model = keras.Sequential(
    [
        keras.Input((64, 40, 1)),
        layers.Conv2D(12, 3, strides=2, activation="relu"),
        layers.Conv2D(24, 3, strides=2, activation="relu"),
        layers.Flatten(),
        layers.Dense(BIRDS),
    ]
)
model.compile(
    optimizer="adam",
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
    jit_compile=False,
)
history = model.fit(data, epochs=8, verbose=2)
