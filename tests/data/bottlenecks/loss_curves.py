"""Forecast of a price curve, with a loop of its own that prints how it goes."""

import keras
import numpy as np
import tensorflow as tf

LENGTH, BATCH, STEPS = 64, 64, 600
keras.utils.set_random_seed(23)
rng = np.random.default_rng(23)
curves = rng.normal(size=(4000, LENGTH + 1)).cumsum(axis=1)

model = keras.Sequential(
    [
        keras.Input((LENGTH,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(1),
    ]
)
optimizer = keras.optimizers.Adam(1e-3)
model.build((None, LENGTH))
optimizer.build(model.trainable_variables)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    norms = [tf.norm(gradient) for gradient in gradients]
    return loss, norms


def draw():
    rows = []
    for index in rng.integers(0, len(curves), BATCH):
        curve = curves[index]
        mean, spread = float(np.mean(curve)), float(np.std(curve)) + 1e-6
        rows.append([(value - mean) / spread for value in curve])
    return np.array(rows, dtype="float32")


smooth, history = None, []
for step in range(STEPS):
    batch = draw()
    loss, norms = train_step(tf.constant(batch[:, :-1]), tf.constant(batch[:, -1:]))
    value = float(loss)
    largest = max(float(norm.numpy()) for norm in norms)
    smooth = value if smooth is None else 0.95 * smooth + 0.05 * value
    history.append((step, value, largest))
    if step % 50 == 0:
        print(f"{step:4d} loss {smooth:.4f} gradient {largest:.3f}")
