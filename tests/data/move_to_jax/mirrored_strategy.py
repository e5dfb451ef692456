"""All cards of the machine, by MirroredStrategy."""

import numpy as np
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
print("Number of devices:", strategy.num_replicas_in_sync)
batch_size = 8 * strategy.num_replicas_in_sync

with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(1)])
    model.compile(optimizer="adam", loss="mse")

x, y = np.random.rand(32, 8).astype("float32"), np.random.rand(32, 1).astype("float32")
data = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(batch_size)
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
model.fit(data.with_options(options), epochs=1, steps_per_epoch=2, verbose=0)
