"""What follows from a failure under Ray Train: it begins again, or says at once why it does not.

Only the process that has Ray imports this.
"""

from __future__ import annotations

import ray
from ray.train import UserCallback

from tfdyno.jobs.launch._ray_board import Said
from tfdyno.jobs.launch._ray_failures import Fatal, culprit_of


class Attempts(UserCallback):
    """Called in the process that watches the workers."""

    def __init__(self, board: str, purpose: str, restarts: int) -> None:
        """Begin.

        Args:
            board: Name of the actor.
            purpose: What is done, in messages: ``training train.py``.
            restarts: Failures after which Ray Train begins again.
        """
        self._board, self._purpose, self._left = board, purpose, restarts

    def after_exception(self, run_context: object, worker_exceptions: dict[int, Exception]) -> None:
        """Tell of a failure that another try follows; raise after one that none shall follow.

        Raises:
            Fatal: What was asked is wrong, or it was to end anyway.
        """
        board = ray.get_actor(self._board)
        rank, failure = culprit_of(worker_exceptions, self._purpose)
        if failure.kind in ("usage", "retreat") or ray.get(board.stops.remote()):
            raise Fatal(failure)
        self._left -= 1
        if self._left >= 0:
            again = Said(rank=rank, kind="restart", text=str(failure.error))
            ray.get(board.say.remote([again]))
