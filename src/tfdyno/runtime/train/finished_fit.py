"""What a ``fit`` left at its end, kept so that a run that goes on need not train it again.

The newest checkpoint of a fit is not it: at the end callbacks put the best weights back, and the
moving average takes the place of the weights.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.train.training import MODEL
from tfdyno.runtime.checkpoint.checkpoints import Checkpoints
from tfdyno.runtime.checkpoint.files import Position, latest
from tfdyno.runtime.checkpoint.state import state_of
from tfdyno.runtime.recipe.strategy import is_chief

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Model
    from tfdyno.core.train.training import RunSettings, TrainOutcome

FOLDER = "finished"


def trained_once(
    model: Model,
    arguments: dict[str, Any],
    settings: RunSettings,
    train: Callable[[dict[str, Any], RunSettings], TrainOutcome],
) -> TrainOutcome:
    """Train, or bring back what was learned where an earlier run came to the end of this fit.

    Such a one is not trained again, unless it is to have more epochs now: no step of it is run,
    and the weights, the optimizer and the random numbers are those that it left.

    Args:
        model: That ``train`` trains.
        arguments: Of its ``fit``.
        settings: Of this fit.
        train: Takes arguments and settings; raises where there was nothing to train on.

    Raises:
        UsageError: A later tfdyno wrote what is kept, or it is another model's.
        ToolError: A file cannot be written or read.
    """
    finished, wanted = FinishedFit(settings.output), int(arguments.get("epochs") or 1)
    epochs = finished.epochs(wanted) if settings.resume else None
    if epochs is None:
        outcome = train(arguments, settings)
        if not outcome.stopped:
            finished.keep(model, outcome, wanted)
        return outcome
    # The model as it was at its end is written already: this one is restored below.
    outcome = train({**arguments, "epochs": epochs}, replace(settings, save_model=False))
    finished.restore(model)
    path = Path(settings.output, MODEL)
    return replace(outcome, model_path=str(path) if path.exists() else "")


class FinishedFit:
    """The end of one fit, in the folder of that fit; without a folder nothing is kept."""

    def __init__(self, output: str) -> None:
        """Take the folder of the fit; empty: none."""
        self._folder = Path(output) / FOLDER if output else None

    def epochs(self, wanted: int) -> int | None:
        """Return the epochs of the fit at its end; None where it did not come to it, or goes on.

        Args:
            wanted: Epochs that it is to have now; fewer than these may have been enough for its
                callbacks.

        Raises:
            UsageError: A later tfdyno wrote it.
        """
        if self._folder is None or not self._folder.is_dir():
            return None
        found = latest(self._folder)
        if found is None or wanted > found.position.data["wanted"]:
            return None
        return found.position.epoch

    def keep(self, model: Model, outcome: TrainOutcome, wanted: int) -> None:
        """Keep all that the training has changed, the random numbers included.

        Args:
            model: As the fit left it.
            outcome: Of the fit.
            wanted: Epochs that it was to have.

        Raises:
            ToolError: It cannot be written.
        """
        if self._folder is None:
            return
        data = {"wanted": wanted}
        position = Position(epoch=outcome.epochs, seed=outcome.seed, data=data)
        with Checkpoints(self._folder, keep=1, writes=is_chief()) as checkpoints:
            checkpoints.save(outcome.steps, state_of(model), position, wait=True)

    def restore(self, model: Model) -> None:
        """Set what was kept.

        Args:
            model: Built, with its optimizer.

        Raises:
            UsageError: It is another model.
            ToolError: The file cannot be read.
        """
        assert self._folder is not None
        with Checkpoints(self._folder, keep=1, writes=is_chief()) as checkpoints:
            found = checkpoints.latest()
            assert found is not None
            checkpoints.restore(state_of(model), found)
