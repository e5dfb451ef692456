"""Forecasts a series with a small convolution; a line from debugging was left in."""

import keras
import numpy as np

keras.utils.set_random_seed(2)
days = np.arange(6000) / 365.0
series = np.sin(2 * np.pi * days) + 0.3 * np.sin(14 * np.pi * days)
windows = np.lib.stride_tricks.sliding_window_view(series, 25)[:5888].astype("float32")
past, tomorrow = windows[:, :24, None], windows[:, 24]

model = keras.Sequential(
    [
        keras.Input((24, 1)),
        keras.layers.Conv1D(16, 5, activation="relu"),
        keras.layers.Conv1D(16, 5, activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(1),
    ]
)
model.compile("adam", "mse", run_eagerly=True)
model.fit(past, tomorrow, batch_size=64, epochs=3, verbose=2)
