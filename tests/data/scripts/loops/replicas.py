"""A strategy over two devices."""

import tensorflow as tf
from tensorflow import keras

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
with strategy.scope():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4)])
    optimizer = keras.optimizers.SGD(0.1)


def update(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))


@tf.function
def step(x):
    strategy.run(update, args=(x,))


data = tf.data.Dataset.from_tensors(tf.ones((16, 4))).repeat()
for x in strategy.experimental_distribute_dataset(data):
    step(x)
