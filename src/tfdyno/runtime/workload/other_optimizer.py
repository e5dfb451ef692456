"""Another optimizer in place of the one that a model is compiled with, to learn what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.base.keras2 import is_keras2

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Model

_CLASSES = {"adafactor": "Adafactor", "lion": "Lion", "sgd": "SGD"}
_COMMON = (
    "weight_decay",
    "clipnorm",
    "global_clipnorm",
    "clipvalue",
    "use_ema",
    "ema_momentum",
    "ema_overwrite_frequency",
    "loss_scale_factor",
    "gradient_accumulation_steps",
)
"""What every optimizer of Keras has, and what it adds to a step; the learning rate adds nothing."""


def take_optimizer(model: Model, name: str) -> str:
    """Train with another optimizer, at the settings that both have; returns what to tell.

    A loss that was scaled stays so. The model is not built yet, or its optimizer is not.

    Args:
        model: A compiled Keras 3 model.
        name: ``adafactor``, ``lion`` or ``sgd`` (without momentum).

    Raises:
        UsageError: The model keeps no optimizer of its own, or is one of Keras 2.
    """
    import keras

    if is_keras2():
        what = "another optimizer cannot be weighed for this model"
        raise UsageError(what, why="it is one of Keras 2")
    own = getattr(model, "optimizer", None)
    if not isinstance(own, keras.optimizers.Optimizer):
        what = "another optimizer cannot be weighed for this model"
        raise UsageError(what, why="it was compiled without one")
    scaled = isinstance(own, keras.optimizers.LossScaleOptimizer)
    inner = own.inner_optimizer if scaled else own
    settings = {key: getattr(inner, key) for key in _COMMON}
    found = getattr(keras.optimizers, _CLASSES[name])(**settings)
    model.optimizer = keras.optimizers.LossScaleOptimizer(found) if scaled else found
    return f"Optimizer {name} in place of {inner.name}: what is learned changes."
