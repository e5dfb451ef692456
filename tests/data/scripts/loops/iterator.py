"""The step takes the iterator, clips its gradients in a loop over tensors, and runs by a strategy."""

import tensorflow as tf
from tensorflow import keras

strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
with strategy.scope():
    model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(4)])
    optimizer = keras.optimizers.SGD(0.1)


def update(x, y):
    with tf.GradientTape() as tape:
        output = model(x, training=True)
        if tf.reduce_mean(output) > 1e6:
            output = output * 0.5
        loss = tf.reduce_mean((output - y) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


@tf.function
def train_step(iterator):
    return strategy.run(update, args=next(iterator))


data = tf.data.Dataset.from_tensor_slices((tf.ones((60, 16)), tf.ones((60, 4))))
iterator = iter(data.batch(20).repeat())
while True:
    train_step(iterator)
