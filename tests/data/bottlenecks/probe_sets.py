"""Fits one small head for each group of a survey, turn by turn."""

import keras
import numpy as np
import tensorflow as tf

GROUPS, ROWS, COLUMNS = 8, 512, 40
keras.utils.set_random_seed(28)
rng = np.random.default_rng(28)
answers = rng.normal(size=(GROUPS, ROWS, COLUMNS)).astype("float32")
scores = answers[:, :, :3].sum(-1, keepdims=True)

body = keras.Sequential([keras.Input((COLUMNS,)), keras.layers.Dense(64, activation="relu")])
heads = [keras.Sequential([keras.Input((64,)), keras.layers.Dense(1)]) for _ in range(GROUPS)]
variables = [v for part in (body, *heads) for v in part.trainable_variables]
optimizer = keras.optimizers.SGD(0.01, momentum=0.9)
optimizer.build(variables)


def update(head, x, y):
    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(head(body(x)) - y))
        watched = body.trainable_variables + head.trainable_variables
        for gradient, variable in zip(tape.gradient(loss, watched), watched):
            variable.assign_sub(0.01 * gradient)
        return loss

    return step(x, y)


batches = [
    (tf.constant(answers[g, i : i + 64]), tf.constant(scores[g, i : i + 64]))
    for i in range(0, ROWS, 64)
    for g in range(GROUPS)
]
for turn in range(4):
    total = 0.0
    for number, (x, y) in enumerate(batches):
        total += update(heads[number % GROUPS], x, y)
    print(f"turn {turn}: {float(total) / len(batches):.4f}")
