"""Trains with two workers on this machine; the first one starts the second."""

import json
import os
import socket
import subprocess
import sys


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def start_other():
    if "TF_CONFIG" in os.environ:
        return None
    cluster = {"worker": [f"127.0.0.1:{port}" for port in free_ports(2)]}
    own, its = ({"cluster": cluster, "task": {"type": "worker", "index": i}} for i in range(2))
    env = {**os.environ, "TF_CONFIG": json.dumps(its)}
    os.environ["TF_CONFIG"] = json.dumps(own)
    return subprocess.Popen([sys.executable, __file__], env=env)


def train(fields=1024, batch=32, verbose=2):
    import keras
    import numpy as np
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    keras.utils.set_random_seed(52)
    rng = np.random.default_rng(52)
    x = rng.normal(size=(1280, fields)).astype("float32")
    y = x[:, :8].sum(axis=1, keepdims=True)
    with strategy.scope():
        model = keras.Sequential(
            [
                keras.Input((fields,)),
                keras.layers.Dense(1536, activation="relu"),
                keras.layers.Dense(1024, activation="relu"),
                keras.layers.Dense(1),
            ]
        )
        optimizer = keras.optimizers.SGD(0.001)
        optimizer.build(model.trainable_variables)

    def on_worker(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    @tf.function
    def train_step(x, y):
        return strategy.reduce("MEAN", strategy.run(on_worker, args=(x, y)), axis=None)

    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(batch, drop_remainder=True).prefetch(2)
    data = strategy.experimental_distribute_dataset(data)
    for epoch in range(3):
        for batch_x, batch_y in data:
            loss = train_step(batch_x, batch_y)
        if verbose:
            print(f"epoch {epoch}: {float(loss):.4f}")


if __name__ == "__main__":
    other = start_other()
    train(verbose=2 if other else 0)
    if other:
        other.wait()
