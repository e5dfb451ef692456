"""What follows from a failure under Ray Train: it begins again, or says at once why it does not.

Only the process that has Ray imports this.
"""

from __future__ import annotations

from typing import Any

import ray
from ray.train import UserCallback

from tfdyno.core.errors import TfdynoError, ToolError, UsageError
from tfdyno.jobs._ray_board import Said
from tfdyno.jobs._ray_worker import NodeFailed

LOST = "its Ray worker has died: it was killed, ran out of memory, or its machine is gone"
PREEMPTED = "its machine is taken away"


class Fatal(Exception):  # noqa: N818  (it is what happened)
    """Nothing would be mended by another try; its argument is the error in words."""


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

    def after_exception(
        self, run_context: object, worker_exceptions: dict[int, Exception]
    ) -> None:
        """Tell of a failure that another try follows; raise after one that none shall follow.

        Raises:
            Fatal: What was asked is wrong, or it was to end anyway.
        """
        board = ray.get_actor(self._board)
        rank, said = culprit_of(worker_exceptions, self._purpose)
        if said["kind"] == "usage" or ray.get(board.stops.remote()):
            raise Fatal(said)
        self._left -= 1
        if self._left >= 0:
            again = Said(rank=rank, kind="restart", text=str(error_of(said)))
            ray.get(board.say.remote([again]))


def culprit_of(failures: dict[int, Exception], purpose: str) -> tuple[int, dict[str, Any]]:
    """The worker that failed by itself, and its error in words; without such, the first.

    Args:
        failures: What Ray Train has of each worker by rank.
        purpose: What is done, in messages.
    """
    said = {rank: _said(rank, one, purpose) for rank, one in sorted(failures.items())}
    rank = min(said, key=lambda one: (said[one]["kind"] != "usage", said[one]["is_echo"], one))
    return rank, said[rank]


def error_of(said: dict[str, Any]) -> TfdynoError:
    """An error from its words."""
    kind = UsageError if said["kind"] == "usage" else ToolError
    return kind(said["what"], why=said["why"], remedy=said["remedy"])


def fatal_of(error: Exception, purpose: str) -> TfdynoError:
    """What the last error of Ray Train means."""
    if failures := getattr(error, "worker_failures", None):
        return error_of(culprit_of(failures, purpose)[1])
    inner = getattr(error, "controller_failure", error)
    if isinstance(inner, Fatal):
        return error_of(inner.args[0])
    words = " ".join(str(inner).split())
    if "No module named 'tfdyno'" in words:
        remedy = "install it there, the same version as here"
        return UsageError("tfdyno is not installed on the nodes of the cluster", remedy=remedy)
    return ToolError(f"{purpose} failed in Ray Train", why=words or type(inner).__name__)


def _said(rank: int, failure: Exception, purpose: str) -> dict[str, Any]:
    if isinstance(failure, NodeFailed):
        found: dict[str, Any] = failure.args[0]
        return found
    cause = getattr(failure, "health_check_failure", failure)
    why = PREEMPTED if getattr(cause, "preempted", False) else LOST
    return {
        "kind": "tool", "what": f"{purpose} failed in worker {rank}", "why": why, "remedy": "",
        "is_echo": False,
    }  # fmt: skip
