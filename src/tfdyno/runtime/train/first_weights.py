"""Two trainings that begin with the same weights, whatever each would draw for itself.

A seed does not do it: 64 bits are drawn otherwise than 32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.runtime.recipe.strategy import is_chief

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.base.untyped import Model


def begin_with(model: Model, file: Path) -> None:
    """Set the weights that a file keeps, in the types of the model; without the file, make it.

    Counters and states of random numbers stay. A model of other shapes begins as it is.

    Args:
        model: Built.
        file: ``.npz``; its folder exists.
    """
    import keras
    import numpy as np

    own = [one for one in model.weights if keras.backend.is_float_dtype(one.dtype)]
    if not file.exists():
        if is_chief():
            np.savez(file, *(np.asarray(one.numpy(), "float64") for one in own))
        return
    with np.load(file, allow_pickle=False) as kept:
        values = [kept[name] for name in kept.files]
    if [one.shape for one in values] == [tuple(one.shape) for one in own]:
        for one, value in zip(own, values, strict=True):
            one.assign(value.astype("float32") if one.dtype == "bfloat16" else value)
