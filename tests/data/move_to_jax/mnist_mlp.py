"""Digits by a small MLP, as the first tutorial has it."""

import numpy as np
import tensorflow as tf

(x_train, y_train) = np.random.rand(64, 28, 28), np.random.randint(0, 10, 64)

model = tf.keras.models.Sequential(
    [
        tf.keras.layers.Input((28, 28)),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(32, activation="relu"),
        tf.keras.layers.Dropout(0.2),
        tf.keras.layers.Dense(10),
    ]
)
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer="adam", loss=loss_fn, metrics=["accuracy"])
model.fit(x_train, y_train, epochs=1, batch_size=32, verbose=0)
model.evaluate(x_train, y_train, verbose=0)

probability_model = tf.keras.Sequential([model, tf.keras.layers.Softmax()])
print(tf.argmax(probability_model.predict(x_train[:5], verbose=0), axis=1).numpy())
