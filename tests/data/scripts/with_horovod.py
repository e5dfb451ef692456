"""Trains with Horovod and Keras 2."""

import horovod.tensorflow.keras as hvd
import keras
import numpy as np

hvd.init()
x = np.random.default_rng(0).normal(size=(512, 8)).astype("float32")[hvd.rank() :: hvd.size()]
y = x.sum(axis=1, keepdims=True)
model = keras.Sequential([keras.layers.Dense(1)])
optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(0.01 * hvd.size()))
model.compile(optimizer, "mse")
callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    hvd.callbacks.LearningRateWarmupCallback(initial_lr=0.01 * hvd.size(), warmup_epochs=2),
]
model.fit(x, y, batch_size=16, epochs=4, callbacks=callbacks)
