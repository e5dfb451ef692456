"""What every cell trains: a small model with all that can go wrong, on data that never change.

Two residual blocks, so that there is something to recompute; a convolution; moving averages of
``BatchNormalization``, which replicas must agree upon; a ``Dropout`` whose random state moves on,
but whose output is multiplied by 0, so that its masks do not keep cells from being compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import numpy as np

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Model, Optimizer, Tensor, Value

SAMPLES, BATCH, EPOCHS = 128, 16, 2
"""Eight batches of all replicas in an epoch."""
BATCHES = EPOCHS * SAMPLES // BATCH
STEPS, CHANNELS = 6, 8
SEED = 7


def data() -> tuple[Any, Any]:
    """Inputs and targets that a small model learns in a few steps."""
    rng = np.random.default_rng(SEED)
    x = rng.normal(size=(SAMPLES, STEPS, 2)).astype("float32")
    y = (x.mean(axis=(1, 2)) + 0.5 * x[:, 0, 0] > 0).astype("float32")[:, None]
    return x, y


def begin(precision: str) -> None:
    """Forget the cell before, and set what holds for all layers that are made from here on."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(SEED)
    keras.config.set_dtype_policy(precision)


def network() -> Model:
    """The model without loss and optimizer."""
    inputs = keras.Input((STEPS, 2))
    hidden = keras.layers.Conv1D(CHANNELS, 3, use_bias=False, name="stem")(inputs)
    for number in range(2):
        hidden = _block(hidden, f"block{number}_", is_random=number == 1)
    pooled = keras.layers.GlobalAveragePooling1D()(hidden)
    outputs = keras.layers.Dense(1, activation="sigmoid", dtype="float32", name="head")(pooled)
    return keras.Model(inputs, outputs, name="subject")


def optimizer(**options: Any) -> Optimizer:
    """Adam: its steps tell whether updates are counted right. A large epsilon keeps noise small."""
    return keras.optimizers.Adam(0.02, epsilon=1e-2, **options)


def loss() -> Value:
    """What is minimized."""
    return keras.losses.BinaryCrossentropy()


def weights(model: Model) -> list[Any]:
    """Weights and moving averages as numbers, without the states of random layers."""
    return [np.array(v.numpy()) for v in model.variables if "float" in v.dtype]


def _block(x: Tensor, name: str, *, is_random: bool) -> Value:
    layers = keras.layers
    inner = layers.Dense(CHANNELS, use_bias=False, name=f"{name}wide")(x)
    inner = layers.BatchNormalization(momentum=0.9, name=f"{name}norm")(inner)
    inner = layers.Activation("tanh", name=f"{name}tanh")(inner)
    if is_random:
        muted = layers.Dropout(0.3, name=f"{name}dropout")(inner)
        muted = layers.Rescaling(0.0, name=f"{name}mute")(muted)
        inner = layers.Add(name=f"{name}random")([inner, muted])
    inner = layers.Dense(CHANNELS, use_bias=False, name=f"{name}narrow")(inner)
    return layers.Add(name=f"{name}add")([x, inner])
