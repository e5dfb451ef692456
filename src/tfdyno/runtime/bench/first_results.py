"""What a run gives at first, from weights that it shares with runs on another backend.

Nothing of this is timed: weights are set before the first step, a loss that the step told anyway is
read after it, and the model is evaluated when all is measured.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from keras import tree

from tfdyno.core.base.errors import ToolError
from tfdyno.core.measure.measurement import FirstResults
from tfdyno.runtime.base.keras_internals import all_layers

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.base.untyped import Layer, Logs, Model, Value

CALLS = 5
"""Calls of the train function whose loss is kept: the fewest that show an update of the weights
and what it does to the next, while sums in another order are still close to each other."""
_STRENGTHS = ("rate", "dropout", "recurrent_dropout", "stddev")
"""Attributes of layers that draw nothing where all of these that they have are 0."""


class FirstOf:
    """Keeps the first results of one run.

    Attributes:
        found: So far.
    """

    def __init__(self, model: Model, batch: tuple[Any, ...], file: Path) -> None:
        """Build the model on its first batch, and set the weights that the file has.

        Args:
            model: Compiled.
            batch: (x,), (x, y) or (x, y, sample_weight), as numpy arrays.
            file: ``.npz``, made where it is not there; its folder exists.

        Raises:
            ToolError: The model has other weights than the one that made the file.
        """
        self._model, self._file = model, file
        self._batch = batch
        _build(model, batch)
        self._begin()
        self.found = FirstResults(random_layers=random_layers(model))

    def stepped(self, step: int, logs: Logs) -> None:
        """Take what a call of the train function told after so many steps."""
        self._keep(step, loss_in(logs))

    def gave(self, outputs: Value) -> None:
        """Take what the forward pass gave for the first batch."""
        self.found = replace(self.found, random_layers=())  # at rest in a forward pass
        leaves = [np.abs(np.asarray(leaf, np.float64)) for leaf in tree.flatten(outputs)]
        self._keep(1, float(np.mean([leaf.mean() for leaf in leaves])))

    def finish(self) -> FirstResults:
        """Return all, the loss of the first batch without random numbers where it takes that."""
        if not self.found.random_layers or not self.found.steps:
            return self.found
        loss = self._loss_at_rest()
        return replace(self.found, evaluated=loss if math.isfinite(loss) else None)

    def _loss_at_rest(self) -> float:
        """Return NaN where the user's own code fails in this: all is measured by now."""
        self._begin()
        x, *rest = self._batch
        named = dict(zip(("y", "sample_weight"), rest, strict=False))
        size = len(tree.flatten(x)[0])
        try:
            told = self._model.evaluate(x, **named, batch_size=size, verbose=0, return_dict=True)
        except Exception:
            return math.nan
        return loss_in(told)

    def _keep(self, step: int, value: float) -> None:
        found = self.found
        if len(found.steps) >= CALLS or not math.isfinite(value):
            return
        self.found = replace(found, steps=(*found.steps, step), values=(*found.values, value))

    def _begin(self) -> None:
        from tfdyno.runtime.train.loop import begin_with

        if not self._file.exists():
            part = self._file.with_suffix(".part.npz")
            begin_with(self._model, part)
            part.replace(self._file)
        elif not begin_with(self._model, self._file):
            raise ToolError(
                f"{self._model.name} does not begin with the weights of the run before it",
                why="it has others on this backend, or the code builds it otherwise each time",
                remedy="build the same model in every run",
            )


def loss_in(logs: Logs) -> float:
    """Return the loss that a step told; NaN where it told none."""
    told: Any = logs
    if isinstance(logs, dict):
        told = logs.get("loss", next(iter(logs.values()), None))
    try:
        return float(told)
    except (TypeError, ValueError):
        return math.nan


def random_layers(model: Model) -> tuple[str, ...]:
    """Return names of layers that draw random numbers while the model is trained."""
    return tuple(layer.name for layer in all_layers(model) if _draws(layer))


def _draws(layer: Layer) -> bool:
    import keras

    if not any(isinstance(one, keras.random.SeedGenerator) for one in vars(layer).values()):
        return False
    strengths = [getattr(layer, name) for name in _STRENGTHS if hasattr(layer, name)]
    return not strengths or any(strengths)


def _build(model: Model, batch: tuple[Any, ...]) -> None:
    """Build all that the first batch would, so that ``fit`` itself takes none for it."""
    if getattr(model, "compiled", False) and len(batch) > 1:
        model._symbolic_build(data_batch=batch)
    elif not model.built:
        model(batch[0])
