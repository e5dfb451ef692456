"""What a ``fit`` left at its end, kept so that a run that goes on need not train it again.

The newest checkpoint of a fit is not it: at the end callbacks put the best weights back, and the
moving average takes the place of the weights.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.runtime.checkpoint_files import Position, latest
from tfdyno.runtime.checkpoint_state import state_of
from tfdyno.runtime.checkpoints import Checkpoints
from tfdyno.runtime.train_strategy import is_chief

if TYPE_CHECKING:
    from tfdyno.core.training import TrainOutcome

FOLDER = "finished"


class FinishedFit:
    """The end of one fit, in the folder of that fit; without a folder nothing is kept."""

    def __init__(self, output: str) -> None:
        """Take the folder of the fit; empty: none."""
        self._folder = Path(output) / FOLDER if output else None

    def epochs(self, wanted: int) -> int | None:
        """Epochs that the fit had at its end; None where it did not come to it, or has to go on.

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

    def keep(self, model: Any, outcome: TrainOutcome, wanted: int) -> None:  # noqa: ANN401
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

    def restore(self, model: Any) -> None:  # noqa: ANN401
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
