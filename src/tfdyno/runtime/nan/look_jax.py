"""One train step of Keras on JAX, run operation by operation and without any effect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import keras
import numpy as np

from tfdyno.runtime.base.step_hooks import WithoutEffect

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Batch, Model, Tensor, Value
    from tfdyno.runtime.base.step_hooks import Call, Recorder


OWN_STEP = "the train_step is the model's own, which JAX runs as a whole"


def run_step(model: Model, batch: Batch, recorder: Recorder, found: Value) -> None:
    """Run forward and backward as Keras' own ``train_step`` does; one of the model's own is left.

    JAX traces what it differentiates, so that no value between two layers is seen on the way back.

    Args:
        model: Compiled and built.
        batch: As tensors.
        recorder: Keeps the calls of layers.
        found: The ``NanInspection`` that takes what is computed.
    """
    if found.own_step:
        found.problem = OWN_STEP
        return
    x, y, weight = keras.utils.unpack_x_y_sample_weight(
        keras.tree.map_structure(lambda leaf: None if leaf is None else np.asarray(leaf), batch)
    )
    takes = {"training": True} if getattr(model, "_call_has_training_arg", True) else {}

    def loss_of(predicted: Value) -> Value:
        return model.compute_loss(x=x, y=y, y_pred=predicted, sample_weight=weight, training=True)

    found.predicted = model(x, **takes)
    found.calls = computed(recorder.calls)
    found.loss = loss_of(found.predicted)
    recorder.active = False
    found.keep_losses(model)
    variables = model.trainable_variables

    def differentiated(values: list[Any]) -> Value:
        with WithoutEffect(list(zip(variables, values, strict=True))):
            return loss_of(model(x, **takes))

    gradients = jax.grad(differentiated)([variable.value for variable in variables])
    found.gradients = list(zip(variables, gradients, strict=True))


def computed(calls: list[Call]) -> list[Call]:
    """Return calls with values: what JAX only traced, as within ``jax.checkpoint``, has none."""
    return [one for one in calls if not any(map(_is_traced, (*one.inputs, *one.outputs)))]


def _is_traced(tensor: Tensor) -> bool:
    return isinstance(tensor, jax.core.Tracer)
