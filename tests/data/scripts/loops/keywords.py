"""The step is called with keyword arguments, one of them a Python value, and a batch that is a dict."""

import tensorflow as tf
from tensorflow import keras

left, right = keras.Input((16,), name="left"), keras.Input((8,), name="right")
joined = keras.layers.Concatenate()([left, right])
model = keras.Model({"left": left, "right": right}, keras.layers.Dense(4)(joined))
optimizer = keras.optimizers.Adam()


@tf.function
def step(batch, *, targets, weights=None, training=True, penalty="l2"):
    with tf.GradientTape() as tape:
        output = model(batch, training=training)
        loss = tf.reduce_mean(weights * tf.reduce_sum((output - targets) ** 2, axis=-1))
        if penalty == "l2":
            loss += 1e-4 * tf.add_n([tf.nn.l2_loss(v) for v in model.trainable_variables])
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return {"loss": loss}


batch = {"left": tf.ones((12, 16)), "right": tf.ones((12, 8))}
while True:
    step(batch, targets=tf.ones((12, 4)), weights=tf.ones((12,)), training=True)
