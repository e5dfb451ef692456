"""A Horovod script of Keras 2, and by hand what several processes of it learn."""

from __future__ import annotations

import numpy as np

SCRIPT = """
import json
import sys

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf

hvd.init()
gpus = tf.config.experimental.list_physical_devices("GPU")
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
if gpus:
    tf.config.experimental.set_visible_devices(gpus[hvd.local_rank()], "GPU")

drawn = np.random.default_rng(0)
x = drawn.normal(size=(192, 4)).astype("float32")
y = (x.sum(axis=1, keepdims=True) + 0.1 * drawn.normal(size=(192, 1))).astype("float32")
data = tf.data.Dataset.from_tensor_slices((x, y)).shard(hvd.size(), hvd.rank()).batch(16)

model = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(1)])
model.build((None, 4))
with np.load("first.npz") as first:
    model.set_weights([first[name] for name in sorted(first)])

rate = 0.01 * hvd.size()
optimizer = tf.keras.optimizers.legacy.SGD(rate, momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer, compression=hvd.Compression.none)
model.compile(optimizer=optimizer, loss="mse", metrics=["mae"])
callbacks = [
    # Horovod: all begin with the weights of the first.
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    hvd.callbacks.MetricAverageCallback(),
    hvd.callbacks.LearningRateWarmupCallback(initial_lr=rate, warmup_epochs=2),
    hvd.callbacks.LearningRateScheduleCallback(initial_lr=rate, multiplier=0.5, start_epoch=3),
]
if hvd.rank() == 0:
    callbacks.append(tf.keras.callbacks.ModelCheckpoint("kept.h5"))
history = model.fit(data, epochs=5, callbacks=callbacks, verbose=2 if hvd.rank() == 0 else 0)
if hvd.rank() == 0:
    found = {name: [float(one) for one in history.history[name]] for name in ("loss", "mae")}
    with open(sys.argv[1], "w") as file:
        json.dump(found, file)
"""
ARRAYS = """
import json
import sys

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf

hvd.init()
drawn = np.random.default_rng(0)
x = drawn.normal(size=(256, 4)).astype("float32")
y = (x.sum(axis=1, keepdims=True) + 0.1 * drawn.normal(size=(256, 1))).astype("float32")
validation = (x[192:], y[192:])
x, y = x[:192][hvd.rank()::hvd.size()], y[:192][hvd.rank()::hvd.size()]

model = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(1)])
model.build((None, 4))
with np.load("first.npz") as first:
    model.set_weights([first[name] for name in sorted(first)])

optimizer = tf.keras.optimizers.legacy.SGD(0.01 * hvd.size(), momentum=0.5)
optimizer = hvd.DistributedOptimizer(
    optimizer, backward_passes_per_step=2, average_aggregated_gradients=True
)
model.compile(optimizer=optimizer, loss="mse", metrics=["mae"])
callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback(),
    tf.keras.callbacks.ReduceLROnPlateau(monitor="val_loss", patience=1, factor=0.3, min_delta=0.9),
]
history = model.fit(
    x, y, batch_size=16, epochs=5, callbacks=callbacks, verbose=0, shuffle=False,
    validation_data=validation,
)
score = model.evaluate(*validation, verbose=0)
if hvd.rank() == 0:
    found = {name: [float(one) for one in history.history[name]] for name in ("loss", "val_mae")}
    with open(sys.argv[1], "w") as file:
        json.dump({**found, "score": [float(one) for one in score]}, file)
"""
RATE, MOMENTUM, BATCH, ROWS, EPOCHS = 0.01, 0.9, 16, 192, 5
Weights = list[np.ndarray]


def first_weights() -> Weights:
    """What the script reads before its first step."""
    drawn = np.random.default_rng(1)
    shapes = [(4, 8), (8,), (8, 1), (1,)]
    return [drawn.normal(scale=0.4, size=shape).astype("float32") for shape in shapes]


def learned(size: int) -> dict[str, list[float]]:
    """The losses of so many processes, as Horovod's documentation says what it does.

    Each process takes every ``size``-th row, gradients are averaged, the rate warms up in two
    epochs and is multiplied by ``0.5 ** (epoch - 3)`` from the fourth on, and the momentum of a
    batch is multiplied by the new rate over the old.
    """
    drawn = np.random.default_rng(0)
    x = drawn.normal(size=(ROWS, 4)).astype("float32").astype(float)
    y = (x.sum(axis=1, keepdims=True) + 0.1 * drawn.normal(size=(ROWS, 1))).astype("float32")
    weights = [one.astype(float) for one in first_weights()]
    moved = [np.zeros_like(one) for one in weights]
    steps, rate = ROWS // size // BATCH, RATE * size
    found: dict[str, list[float]] = {"loss": [], "mae": []}
    for epoch in range(EPOCHS):
        seen = []
        for step in range(steps):
            new = _rate(epoch, step / steps, steps, size, rate)
            parts = []
            for rank in range(size):
                rows = slice(step * BATCH, (step + 1) * BATCH)
                parts.append(_gradients(weights, x[rank::size][rows], y[rank::size][rows]))
            seen += [one[1:] for one in parts]
            for place in range(len(weights)):
                gradient = np.mean([one[0][place] for one in parts], axis=0)
                moved[place] = MOMENTUM * new / rate * moved[place] - new * gradient
                weights[place] = weights[place] + moved[place]
            rate = new
        found["loss"].append(float(np.mean([one[0] for one in seen])))
        found["mae"].append(float(np.mean([one[1] for one in seen])))
    return found


def _rate(epoch: int, part: float, steps: int, size: int, now: float) -> float:
    whole = RATE * size
    if epoch < 2:
        return whole / size * ((epoch + part + 1 / steps) * (size - 1) / 2 + 1)
    if epoch >= 3 and part == 0:
        return whole * 0.5 ** (epoch - 3)
    return now


def _gradients(weights: Weights, x: np.ndarray, y: np.ndarray) -> tuple[Weights, float, float]:
    inner, inner_bias, outer, outer_bias = weights
    before = x @ inner + inner_bias
    hidden = np.maximum(before, 0)
    error = hidden @ outer + outer_bias - y
    slope = 2 * error / len(x)
    below = slope @ outer.T * (before > 0)
    made = [x.T @ below, below.sum(axis=0), hidden.T @ slope, slope.sum(axis=0)]
    return made, float(np.mean(error**2)), float(np.mean(np.abs(error)))
