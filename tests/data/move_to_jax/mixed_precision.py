"""Mixed precision with a loss scale."""

import numpy as np
from tensorflow import keras
from tensorflow.keras import layers, mixed_precision

mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential(
    [
        keras.Input((8,)),
        layers.Dense(16, activation="relu"),
        layers.Dense(1, dtype="float32"),
    ]
)
optimizer = mixed_precision.LossScaleOptimizer(keras.optimizers.Adam(1e-3, clipnorm=1.0))
model.compile(optimizer=optimizer, loss="mse")
model.fit(np.random.rand(32, 8), np.random.rand(32, 1), epochs=1, verbose=0)
