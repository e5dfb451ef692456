"""The training of digits.py without tfdyno: two processes, TF_CONFIG and an own loop.

Keras' fit fails under this strategy, so that steps, losses, checkpoints and their return are
written by hand. What tfdyno does beside that (meeting before the start, comparing weights, naming
the worker that failed, ending the others) is left out.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

WORKERS, BATCH, EPOCHS = 2, 32, 5
FOLDER = Path(sys.argv[1])

if "TF_CONFIG" not in os.environ:
    ports = [int(port) for port in sys.argv[2:]]
    cluster = {"worker": [f"127.0.0.1:{port}" for port in ports]}
    processes = []
    for index in range(WORKERS):
        config = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}})
        environment = {**os.environ, "TF_CONFIG": config}
        processes.append(subprocess.Popen([sys.executable, *sys.argv], env=environment))
    sys.exit(max(process.wait() for process in processes))

import keras  # noqa: E402
import tensorflow as tf  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402

strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank = strategy.cluster_resolver.task_id
images, labels = load_digits(return_X_y=True)
images = (images / 16).astype("float32").reshape(-1, 8, 8, 1)


def dataset(first, last, shuffled):
    data = tf.data.Dataset.from_tensor_slices((images[first:last], labels[first:last]))
    data = data.shuffle(last - first, seed=0) if shuffled else data
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return strategy.experimental_distribute_dataset(data.batch(BATCH).with_options(options))


keras.utils.set_random_seed(0)
with strategy.scope():
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(10),
        ]
    )
    optimizer = keras.optimizers.Adam(2e-3)
    optimizer.build(model.trainable_variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=None)
    epoch = tf.Variable(0, dtype=tf.int64)

checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, epoch=epoch)
# Every worker has to take part in writing; what is not the chief's is thrown away.
place = FOLDER / ("chief" if rank == 0 else f"worker-{rank}")
manager = tf.train.CheckpointManager(checkpoint, place, max_to_keep=2)
newest = tf.train.latest_checkpoint(FOLDER / "chief")
if newest:
    checkpoint.restore(newest)


@tf.function
def train_step(x, y):
    def replica(x, y):
        with tf.GradientTape() as tape:
            losses = loss_of(y, model(x, training=True))
            loss = tf.nn.compute_average_loss(losses, global_batch_size=BATCH)
        gradients = tape.gradient(loss, model.trainable_variables)
        gradients = tf.distribute.get_replica_context().all_reduce("SUM", gradients)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    return strategy.reduce("SUM", strategy.run(replica, args=(x, y)), axis=None)


@tf.function
def test_step(x, y):
    def replica(x, y):
        loss = loss_of(y, model(x, training=False))
        return tf.reduce_sum(loss), tf.size(loss)

    total, count = strategy.run(replica, args=(x, y))
    return strategy.reduce("SUM", total, axis=None), strategy.reduce("SUM", count, axis=None)


train, test = dataset(0, 1440, True), dataset(1440, len(images), False)
for number in range(int(epoch.numpy()), EPOCHS):
    losses = [float(train_step(x, y)) for x, y in train]
    parts = [test_step(x, y) for x, y in test]
    validation = sum(float(total) for total, _ in parts) / sum(int(count) for _, count in parts)
    epoch.assign_add(1)
    manager.save()
    if rank == 0:
        mean = sum(losses) / len(losses)
        print(f"{number + 1}/{EPOCHS}: loss {mean:.4f}, val_loss {validation:.4f}", flush=True)
