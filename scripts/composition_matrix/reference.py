"""What a cell has to compute, written out: one gradient after the other on one device.

No Keras ``fit``, no accumulation, average or loss scaling of Keras, no strategy: those are what is
tested. Each batch is cut into the parts of the replicas. The gradients of all parts of all batches
of an update are averaged, Adam applies them, the average of the weights follows.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from composition_matrix import subject
from composition_matrix.cells import EMA_OVERWRITE

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Model, Tensor, Value

LOSS_SCALE = 2.0**15
"""As Keras' ``LossScaleOptimizer`` begins; a power of two changes no digit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Weights after the training, and the mean loss of each epoch."""

    weights: list[Any]
    losses: list[float]


@functools.cache
def expected(precision: str, accumulation: int, ema: float, replicas: int) -> Expected:
    """Train as the settings mean it.

    Args:
        precision: Dtype policy.
        accumulation: Batches per update.
        ema: Momentum of the average of the weights, 0 without.
        replicas: Parts of each batch, each with moments of its own in ``BatchNormalization``.
    """
    subject.begin(precision)
    model, adam, of_batch = subject.network(), subject.optimizer(), subject.loss()
    adam.build(model.trainable_variables)
    scale = LOSS_SCALE if precision == "mixed_float16" else 1.0

    def computed(x: Tensor, y: Tensor) -> Value:
        with tf.GradientTape() as tape:
            value = of_batch(y, model(x, training=True))
            scaled = value * scale
        found = tape.gradient(scaled, [v.value for v in model.trainable_variables])
        return value, [gradient / scale for gradient in found]

    gradients = tf.function(computed, autograph=False)
    moving = [v for v in model.non_trainable_variables if "float" in v.dtype]
    average = [v.numpy() for v in model.trainable_variables]
    sums = [np.zeros(v.shape, "float32") for v in model.trainable_variables]
    updates, losses = 0, []
    for batch in range(subject.BATCHES):
        before, after, values = [v.numpy() for v in moving], [], []
        for x, y in _parts(batch, replicas):
            for variable, old in zip(moving, before, strict=True):
                variable.assign(old)
            value, found = gradients(x, y)
            values.append(float(value))
            after.append([v.numpy() for v in moving])
            sums = [s + g.numpy() / replicas for s, g in zip(sums, found, strict=True)]
        for variable, news in zip(moving, zip(*after, strict=True), strict=True):
            variable.assign(np.mean(news, axis=0))
        losses.append(np.mean(values))
        if (batch + 1) % accumulation:
            continue
        adam.apply([tf.constant(s / accumulation) for s in sums], model.trainable_variables)
        sums = [np.zeros_like(s) for s in sums]
        average = _averaged(model, average, ema, updates)
        updates += 1
        if ema and updates % EMA_OVERWRITE == 0:
            _set(model, average)
    if ema:
        _set(model, average)  # as Keras does at the end of fit
    epochs = np.reshape(losses, (subject.EPOCHS, -1)).mean(axis=1)
    return Expected(weights=subject.weights(model), losses=[float(value) for value in epochs])


def _parts(batch: int, replicas: int) -> list[tuple[Any, Any]]:
    x, y = subject.data()
    begin = batch * subject.BATCH % subject.SAMPLES
    part = subject.BATCH // replicas
    starts = range(begin, begin + subject.BATCH, part)
    return [(tf.constant(x[at : at + part]), tf.constant(y[at : at + part])) for at in starts]


def _averaged(model: Model, average: list[Any], ema: float, updates: int) -> list[Any]:
    """The average begins with the weights after the first update."""
    momentum = ema if updates else 0.0
    values = [v.numpy() for v in model.trainable_variables]
    return [momentum * a + (1 - momentum) * v for a, v in zip(average, values, strict=True)]


def _set(model: Model, values: list[Any]) -> None:
    for variable, value in zip(model.trainable_variables, values, strict=True):
        variable.assign(value)
