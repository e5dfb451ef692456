"""Steps that XLA cannot compile, or that are no steps; the first argument names one."""

import sys

import tensorflow as tf
from tensorflow import keras

model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4)])
optimizer = keras.optimizers.SGD(0.1)
keys = tf.constant([0, 1], tf.int64)
initializer = tf.lookup.KeyValueTensorInitializer(keys, tf.constant([1.0, 2.0]))
table = tf.lookup.StaticHashTable(initializer, 0.0)
kind = sys.argv[1]


def prepared(x):
    if kind == "strings":
        buckets = tf.strings.to_hash_bucket_fast(tf.strings.as_string(x[:, 0]), 4)
        return tf.one_hot(buckets, 4)
    if kind == "table":
        return x + table.lookup(tf.cast(x[:, :1], tf.int64))
    if kind == "unique":
        values, _ = tf.unique(tf.reshape(x, [-1]))
        return x + values[:4]
    if kind == "where":
        return tf.gather(x, tf.where(x[:, 0] > 0)[:, 0])
    if kind == "python":
        return tf.numpy_function(lambda a: a + 1, [x], tf.float32)
    return x


def update(x):
    data = prepared(x)
    data = tf.ensure_shape(data, (None, 4))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(data) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))


@tf.function
def step(x):
    update(x)


@tf.function
def epoch(data):
    for x in data:
        update(x)


if kind == "epoch":
    epoch(tf.data.Dataset.from_tensors(tf.ones((16, 4))).repeat())
if kind == "endless":
    while True:
        pass
while True:
    step(tf.ones((16, 4)))
