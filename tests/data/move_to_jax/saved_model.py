"""Trains, then exports with a signature of its own."""

import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(2)])
model.compile("adam", "mse")
model.fit(np.random.rand(16, 8), np.random.rand(16, 2), epochs=1, verbose=0)


@tf.function(input_signature=[tf.TensorSpec([None, 8], tf.float32)])
def serve(x):
    return {"scores": tf.nn.softmax(model(x))}


tf.saved_model.save(model, "exported", signatures={"serving_default": serve})
