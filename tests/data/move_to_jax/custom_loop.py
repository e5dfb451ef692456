"""A training loop written by hand."""

import numpy as np
import tensorflow as tf
from tensorflow import keras

model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4, "relu"), keras.layers.Dense(1)])
optimizer = keras.optimizers.SGD(1e-3)
loss_fn = keras.losses.MeanSquaredError()
seen = keras.metrics.Mean()
x, y = np.random.rand(32, 8).astype("float32"), np.random.rand(32, 1).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True))
    grads = tape.gradient(loss, model.trainable_weights)
    optimizer.apply_gradients(zip(grads, model.trainable_weights))
    return loss


for step, (batch_x, batch_y) in enumerate(dataset):
    seen.update_state(train_step(batch_x, batch_y))
print(float(seen.result()))
