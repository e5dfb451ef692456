"""Fares of taxi rides from a table on disk."""

import csv
import math
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

RIDES, BATCH = 12800, 256


def write_table(path):
    rng = np.random.default_rng(8)
    start = datetime(2024, 1, 1)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["pickup", "from_lat", "from_lon", "to_lat", "to_lon", "riders", "fare"])
        for _ in range(RIDES):
            when = start + timedelta(minutes=int(rng.integers(500_000)))
            place = rng.normal([40.7, -74.0, 40.7, -74.0], 0.05)
            fare = 3 + 300 * float(np.hypot(place[0] - place[2], place[1] - place[3]))
            row = [when.strftime("%Y-%m-%d %H:%M:%S"), *place.round(6), rng.integers(1, 5), fare]
            writer.writerow(row)


def rides(path):
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            when = datetime.strptime(row["pickup"], "%Y-%m-%d %H:%M:%S")
            a, b, c, d = (float(row[key]) for key in ("from_lat", "from_lon", "to_lat", "to_lon"))
            hour = 2 * math.pi * (when.hour + when.minute / 60) / 24
            values = [a - 40.7, b + 74, c - 40.7, d + 74, a - c, b - d, math.sin(hour),
                      math.cos(hour), when.weekday() / 7, float(row["riders"])]  # fmt: skip
            yield values, [float(row["fare"])]


keras.utils.set_random_seed(8)
table = Path(tempfile.mkdtemp()) / "rides.csv"
write_table(table)
spec = (tf.TensorSpec((10,), tf.float32), tf.TensorSpec((1,), tf.float32))
data = tf.data.Dataset.from_generator(lambda: rides(table), output_signature=spec)
data = data.batch(BATCH).prefetch(tf.data.AUTOTUNE)
model = keras.Sequential([keras.Input((10,))])
for width in (64, 64, 32):
    model.add(keras.layers.Dense(width, activation="gelu"))
model.add(keras.layers.Dense(1))
model.compile(keras.optimizers.Adam(3e-3), "mae", jit_compile=False)
model.fit(data, epochs=5, verbose=2)
table.unlink()
