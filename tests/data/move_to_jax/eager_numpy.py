"""Looks at outputs and metrics as numbers after the training."""

import numpy as np
import tensorflow as tf
from tensorflow import keras

model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(3)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
x, y = np.random.rand(16, 8).astype("float32"), np.random.randint(0, 3, 16)
model.fit(x, y, epochs=1, verbose=0)

accuracy = keras.metrics.SparseCategoricalAccuracy()
accuracy.update_state(y, model(x, training=False))
print("accuracy", accuracy.result().numpy())
scores = model(x[:2])
print(tf.nn.softmax(scores).numpy(), scores.numpy().shape)
