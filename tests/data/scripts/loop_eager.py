"""A loop that takes gradients outside every tf.function."""

import tensorflow as tf

weight = tf.Variable([[1.0], [2.0]])
for _ in range(3):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.matmul(tf.ones((4, 2)), weight))
    weight.assign_sub(0.1 * tape.gradient(loss, weight))
