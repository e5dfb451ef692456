"""Classes of heart beats from windows of a signal."""

import argparse

import keras
import numpy as np
import tensorflow as tf
from keras import layers

WINDOW, CLASSES = 720, 5


def clean(signal):
    knots = np.arange(0, WINDOW, 12)
    middles = [np.median(signal[max(0, knot - 30) : knot + 30]) for knot in knots]
    signal = signal - np.interp(np.arange(WINDOW), knots, middles)
    shift = np.random.randint(-20, 20)
    signal = np.roll(signal, shift)
    spread = np.median(np.abs(signal - np.median(signal))) + 1e-6
    return np.clip(signal / spread, -8, 8).astype("float32")


def load(signal, label):
    signal = tf.numpy_function(clean, [signal], tf.float32)
    signal.set_shape((WINDOW,))
    return signal[:, tf.newaxis], label


def build():
    return keras.Sequential(
        [
            keras.Input((WINDOW, 1)),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(32, activation="relu"),
            layers.Dense(CLASSES),
        ]
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=64)
    options = parser.parse_args()
    keras.utils.set_random_seed(3)
    rng = np.random.default_rng(3)
    signals = rng.normal(size=(2560, WINDOW)).cumsum(axis=1).astype("float32")
    labels = rng.integers(0, CLASSES, len(signals))
    data = tf.data.Dataset.from_tensor_slices((signals, labels)).shuffle(2560)
    data = data.map(load, num_parallel_calls=tf.data.AUTOTUNE)
    data = data.batch(options.batch_size).prefetch(tf.data.AUTOTUNE)
    model = build()
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    model.fit(data, epochs=options.epochs, verbose=2)


if __name__ == "__main__":
    main()
