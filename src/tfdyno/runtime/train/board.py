"""A training told to TensorBoard: scalars of every epoch, and norms of layers where asked for."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.recipe.recipe import flat
from tfdyno.runtime.recipe.strategy import is_chief
from tfdyno.runtime.train.norms import Norms
from tfdyno.runtime.train.tensorboard import Board

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Model
    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.core.train.training import RunSettings

FOLDER = "tensorboard"
"""The folder in the folder of a run."""


class TrainBoard:
    """Writes what ``settings`` ask for; nothing where they ask for nothing."""

    def __init__(self, settings: RunSettings) -> None:
        """Prepare; only the chief writes."""
        wanted = settings.output and (settings.tensorboard or settings.norms_steps)
        self._every = settings.norms_steps if settings.output else 0
        self._board = Board(Path(settings.output) / FOLDER) if wanted and is_chief() else None

    def begin(self, recipe: Recipe) -> None:
        """Write the settings of the run."""
        if self._board:
            self._board.texts(flat(recipe))

    def watching(
        self, model: Model, run: Callable[[Any], Any], steps_done: Callable[[], int]
    ) -> Callable[[Any], Any]:  # fmt: skip
        """Return the train function, with norms each so many steps where they are asked for."""
        if not self._every:
            return run
        return Norms(model, self._board, every=self._every, steps_done=steps_done).watching(run)

    def epoch_end(
        self, epoch: int, logs: dict[str, Any], model: Model, samples_per_s: float
    ) -> None:  # fmt: skip
        """Write what an epoch came to."""
        if self._board is None:
            return
        rate = None
        with contextlib.suppress(TypeError, ValueError):
            rate = float(model.optimizer.learning_rate.numpy())
        numbers = {name: float(value) for name, value in logs.items() if _is_number(value)}
        self._board.epoch(epoch, numbers, learning_rate=rate, samples_per_s=samples_per_s)

    def close(self) -> None:
        """Have everything on disk."""
        if self._board:
            self._board.close()


def _is_number(value: object) -> bool:
    with contextlib.suppress(TypeError, ValueError):
        float(value)  # type: ignore[arg-type]
        return True
    return False
