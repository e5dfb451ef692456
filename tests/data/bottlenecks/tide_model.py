"""Tides at a harbour: a loop of its own with the errors of all steps."""

import keras
import numpy as np
import tensorflow as tf

HOURS, BATCH = 256, 256
keras.utils.set_random_seed(44)
rng = np.random.default_rng(44)
hours = np.arange(HOURS + 24)
phases = rng.uniform(0, 6.28, (8192, 1))
tides = (np.sin(hours / 2.0 + phases) + 0.4 * np.sin(hours / 4.1 + phases)).astype("float32")

inputs = keras.Input((HOURS,))
x = keras.layers.Dense(512, activation="relu")(inputs)
x = keras.layers.Dense(512, activation="relu")(x)
model = keras.Model(inputs, keras.layers.Dense(24)(x))
features = keras.Model(inputs, x)
optimizer = keras.optimizers.Adam(1e-3)
optimizer.build(model.trainable_variables)


@tf.function
def train_step(past, future):
    with tf.GradientTape() as tape:
        error = model(past, training=True) - future
        loss = tf.reduce_mean(tf.abs(error))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss, features(past)


data = tf.data.Dataset.from_tensor_slices((tides[:, :HOURS], tides[:, HOURS:]))
data = data.shuffle(8192, seed=44).batch(BATCH, drop_remainder=True).prefetch(2)
losses, seen = [], []
for epoch in range(12):
    for past, future in data:
        loss, found = train_step(past, future)
        losses.append(loss)
        seen.append(found)
    spread = tf.math.reduce_std(seen[-1])
    print(f"epoch {epoch}: {float(tf.add_n(losses[-32:])) / 32:.4f}, spread {float(spread):.4f}")
