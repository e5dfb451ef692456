"""A deep chain of small blocks, spread over two devices."""

import keras
import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration(), tf.config.LogicalDeviceConfiguration()]
)

WIDTH, DEPTH, BATCH = 64, 48, 32
keras.utils.set_random_seed(48)
rng = np.random.default_rng(48)
signals = rng.normal(size=(3200, WIDTH)).astype("float32")


class Block(keras.layers.Layer):
    def __init__(self, device):
        super().__init__()
        self.device = device

    def build(self, shape):
        with tf.device(self.device):
            self.scale = self.add_weight(shape=(shape[-1],), initializer="ones")
            self.shift = self.add_weight(shape=(shape[-1],), initializer="zeros")

    def call(self, x):
        with tf.device(self.device):
            return x + 0.1 * tf.tanh(self.scale * x + self.shift)


model = keras.Sequential([keras.Input((WIDTH,))])
for number in range(DEPTH):
    model.add(Block(f"/CPU:{number % 2}"))
optimizer = keras.optimizers.SGD(0.01)
optimizer.build(model.trainable_variables)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - tf.reverse(x, [1])))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss


data = tf.data.Dataset.from_tensor_slices(signals).batch(BATCH).cache().prefetch(2)
for epoch in range(6):
    for x in data:
        loss = train_step(x)
    print(epoch, float(loss))
