"""Scores of articles; their many small tables live on a device of their own."""

import keras
import numpy as np
import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)
STORE, WORK = "/CPU:1", "/CPU:0"
TABLES, ROWS, WIDTH, BATCH = 64, 500, 8, 64


def articles(count):
    rng = np.random.default_rng(49)
    keys = rng.integers(0, ROWS, (count, TABLES)).astype("int32")
    return keys, (keys[:, :4].sum(1) % 2).astype("float32")


class Scorer(tf.Module):
    def __init__(self):
        super().__init__()
        with tf.device(STORE):
            self.tables = [
                tf.Variable(tf.random.normal((ROWS, WIDTH), stddev=0.1)) for _ in range(TABLES)
            ]
        with tf.device(WORK):
            self.head = tf.Variable(tf.random.normal((TABLES * WIDTH,), stddev=0.1))

    @tf.function
    def train_step(self, keys, label):
        with tf.device(WORK), tf.GradientTape() as tape:
            found = [
                tf.tanh(tf.nn.embedding_lookup(table, keys[:, number]))
                for number, table in enumerate(self.tables)
            ]
            score = tf.linalg.matvec(tf.concat(found, -1), self.head)
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(label, score))
        watched = [*self.tables, self.head]
        for gradient, variable in zip(tape.gradient(loss, watched), watched):
            if isinstance(gradient, tf.IndexedSlices):
                variable.scatter_sub(tf.IndexedSlices(0.1 * gradient.values, gradient.indices))
            else:
                variable.assign_sub(0.1 * gradient)
        return loss


keras.utils.set_random_seed(49)
scorer = Scorer()
data = tf.data.Dataset.from_tensor_slices(articles(6400)).batch(BATCH).cache().prefetch(2)
for epoch in range(4):
    for keys, label in data:
        loss = scorer.train_step(keys, label)
    print(f"epoch {epoch}: {loss.numpy():.4f}")
