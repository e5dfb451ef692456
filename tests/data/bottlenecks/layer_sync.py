"""A deep network on two devices, with a loop of its own."""

import keras
import numpy as np
import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration(), tf.config.LogicalDeviceConfiguration()],
)
DEPTH, WIDTH, BATCH = 12, 48, 32
keras.utils.set_random_seed(51)
rng = np.random.default_rng(51)
x = rng.normal(size=(4096, WIDTH)).astype("float32")
y = np.tanh(x[:, ::-1])

strategy = tf.distribute.MirroredStrategy(["/CPU:0", "/CPU:1"])
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH).cache().prefetch(2)
data = strategy.experimental_distribute_dataset(data)


def variable(value):
    return tf.Variable(value, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)


with strategy.scope():
    weights = [variable(tf.random.normal((WIDTH, WIDTH), stddev=0.1)) for _ in range(DEPTH)]
    biases = [variable(tf.zeros((WIDTH,))) for _ in range(DEPTH)]


def forward(x):
    for weight, bias in zip(weights, biases):
        x = x + 0.1 * tf.tanh(x @ weight + bias)
    return x


def on_replica(x, y):
    context = tf.distribute.get_replica_context()
    variables = weights + biases
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(forward(x) - y))
    gradients = tape.gradient(loss, variables)
    for gradient, variable in zip(gradients, variables):
        mean = context.all_reduce(tf.distribute.ReduceOp.MEAN, gradient)
        size = context.all_reduce(tf.distribute.ReduceOp.SUM, tf.norm(mean))
        variable.assign_sub(0.05 * mean / tf.maximum(1.0, size))
    return loss


@tf.function
def train_step(x, y):
    losses = strategy.run(on_replica, args=(x, y))
    return strategy.reduce("MEAN", losses, axis=None)


for epoch in range(3):
    for batch in data:
        loss = train_step(*batch)
    print(f"epoch {epoch}: {float(loss):.4f}")
