"""Whether the weights are still numbers where the loss is one: ``max(nan, 0)`` is 0 on a processor.

A loss behind such a ``relu`` stays finite while every weight is lost, so the weights are looked at
before they are kept: one sum of each on its device, and one read of them all.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from tfdyno.core.train.training import NAN_WEIGHTS
from tfdyno.runtime.train.watch import NanLoss, check_losses

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.base.untyped import Model, Variable
    from tfdyno.runtime.train.consensus import Consensus

FLOATS = ("float16", "bfloat16", "float32", "float64")
ELSEWHERE = "a weight of another worker"


class NanWeights(NanLoss):
    """A weight is not finite, though the loss is."""

    reason = NAN_WEIGHTS
    seen_in = "the weights"

    def __init__(self, path: str, *, epoch: int, step: int) -> None:
        """Tell which weight, and the place as ``NanLoss`` does."""
        super().__init__("loss", math.nan, epoch=epoch, step=step)
        text = f"{path} is not finite at step {step} of epoch {epoch}, though the loss is a number"
        self.args = (text,)


class FiniteWeights:
    """Looks at the weights of a training between two steps."""

    def __init__(self, model: Model, consensus: Consensus) -> None:
        """Take the model, and with whom the end is agreed on."""
        self._model, self._consensus = model, consensus

    def check(self, epoch: int, step: int, logs: Mapping[str, Any]) -> None:
        """Look at all weights; a joint operation where there are other workers.

        Args:
            epoch: Counted from 0.
            step: Steps of that epoch that are done.
            logs: Of the last of them; read only where a weight is lost.

        Raises:
            NanLoss: A weight is not finite, here or at another worker: ``NanWeights`` where the
                loss is.
        """
        path = lost_weight(self._model)
        if self._consensus.agree(always=True, nan=bool(path)):
            check_losses(logs, epoch + 1, step)  # the watch reads it a second later
            raise NanWeights(path or ELSEWHERE, epoch=epoch + 1, step=step)


def lost_weight(model: Model) -> str:
    """Return the path of the first variable that training has lost; empty where there is none.

    A trainable one is lost when any value is not finite, another one when any is NaN: a mask may
    be infinite from the beginning.

    Args:
        model: Built. On JAX its variables are given back their values first.
    """
    on_jax = keras.backend.backend() == "jax"
    if on_jax:
        model.jax_state_sync()  # the step holds the values, the variables none
    trainable = {id(variable) for variable in model.trainable_variables}
    variables = [v for v in model.variables if keras.backend.standardize_dtype(v.dtype) in FLOATS]
    sums = (_sums_on_jax if on_jax else _sums)(variables)
    for variable, total in zip(variables, sums, strict=True):
        # A sum of half precision may overflow where no value does: only a suspect is looked at.
        if not math.isfinite(total) and _is_lost(variable, inf=id(variable) in trainable):
            return str(getattr(variable, "path", None) or variable.name)
    return ""


def _sums(variables: list[Any]) -> list[float]:
    import tensorflow as tf

    from tfdyno.runtime.nan.look import value_of

    if not variables:
        return []
    sums = [tf.cast(tf.reduce_sum(value_of(v)), tf.float32) for v in variables]
    found: list[float] = tf.stack(sums).numpy().tolist()
    return found


def _sums_on_jax(variables: list[Any]) -> list[float]:
    from tfdyno.runtime.base.jax_values import sums_of, whole

    return [float(total) for total in whole(sums_of([v.value for v in variables]))]


def _is_lost(variable: Variable, *, inf: bool) -> bool:
    if keras.backend.backend() == "jax":
        from tfdyno.runtime.base.jax_values import whole

        value = whole(variable.value)
    else:
        from tfdyno.runtime.nan.look import value_of

        value = value_of(variable).numpy()
    wide = np.asarray(value, np.float64)
    return bool(not np.isfinite(wide).all() if inf else np.isnan(wide).any())
