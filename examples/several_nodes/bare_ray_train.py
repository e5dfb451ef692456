"""The training of digits.py without tfdyno, by Ray Train: an own loop in each worker.

Ray sets TF_CONFIG, starts the workers again and hands them the newest checkpoint; Keras' fit fails
under this strategy there as well.
"""

import os
import sys
import tempfile
from pathlib import Path

import ray.train
from ray.train import Checkpoint, FailureConfig, RunConfig, ScalingConfig
from ray.train.tensorflow import TensorflowTrainer

WORKERS, BATCH, EPOCHS = 2, 32, 5


def train_loop(settings):
    """Train in one worker."""
    import keras
    import tensorflow as tf
    from sklearn.datasets import load_digits

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    rank = ray.train.get_context().get_world_rank()
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype("float32").reshape(-1, 8, 8, 1)

    def dataset(first, last, shuffled):
        data = tf.data.Dataset.from_tensor_slices((images[first:last], labels[first:last]))
        data = data.shuffle(last - first, seed=0) if shuffled else data
        options = tf.data.Options()
        policy = tf.data.experimental.AutoShardPolicy.DATA
        options.experimental_distribute.auto_shard_policy = policy
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

    state = tf.train.Checkpoint(model=model, optimizer=optimizer, epoch=epoch)
    if found := ray.train.get_checkpoint():
        with found.as_directory() as folder:
            state.restore(os.path.join(folder, "state"))  # noqa: PTH118

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
        validation = sum(float(total) for total, _ in parts) / sum(int(one) for _, one in parts)
        epoch.assign_add(1)
        found = {"loss": sum(losses) / len(losses), "val_loss": validation}
        with tempfile.TemporaryDirectory() as folder:
            # Every worker has to take part in writing; only the first one's is kept.
            state.write(os.path.join(folder, "state"))  # noqa: PTH118
            kept = Checkpoint.from_directory(folder) if rank == 0 else None
            ray.train.report({**found, "epoch": number + 1}, checkpoint=kept)


result = TensorflowTrainer(
    train_loop,
    train_loop_config={},
    scaling_config=ScalingConfig(num_workers=WORKERS),
    run_config=RunConfig(
        name="run",
        storage_path=str(Path(sys.argv[1]).absolute()),
        failure_config=FailureConfig(max_failures=2),
    ),
).fit()
found = result.metrics
print(f"{found['epoch']}/{EPOCHS}: loss {found['loss']:.4f}, val_loss {found['val_loss']:.4f}")
