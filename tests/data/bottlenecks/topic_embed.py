"""Topics of news from bags of words, on two devices."""

import keras
import numpy as np
import tensorflow as tf

WORDS, TOPICS, BATCH = 16_000, 20, 16
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)


def news(count):
    rng = np.random.default_rng(50)
    topics = rng.integers(0, TOPICS, count)
    bags = np.zeros((count, WORDS), "float32")
    for row, topic in enumerate(topics):
        words = (rng.zipf(1.3, 80) * (topic + 3)) % WORDS
        bags[row, words] = 1.0
    return bags, topics


keras.utils.set_random_seed(50)
bags, topics = news(1280)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    model = keras.Sequential(
        [
            keras.Input((WORDS,)),
            keras.layers.Dense(192, activation="relu"),
            keras.layers.Dense(TOPICS),
        ]
    )
    model.compile(
        optimizer=keras.optimizers.SGD(0.05),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
data = tf.data.Dataset.from_tensor_slices((bags, topics)).batch(BATCH).cache().prefetch(4)
model.fit(data, epochs=3, verbose=2)
