"""What the failures of Ray Train's workers mean, in words; Ray itself is not imported."""

from __future__ import annotations

from typing import Any

from tfdyno.core.base.errors import Failure, TfdynoError, ToolError, UsageError

LOST = "its Ray worker has died: it was killed, ran out of memory, or its machine is gone"
PREEMPTED = "its machine is taken away"


class NodeFailed(Exception):  # noqa: N818  (it is what happened)
    """The training of a worker has failed; its argument is the error in words.

    Ray carries it to the process that decides what follows.
    """

    def __str__(self) -> str:
        """Write it as a sentence, for Ray's own logs."""
        said = self.args[0]
        return ": ".join(filter(None, (said["what"], said["why"])))


class Fatal(Exception):  # noqa: N818  (it is what happened)
    """Nothing would be mended by another try; its argument is the error in words."""


def culprit_of(failures: dict[int, Exception], purpose: str) -> tuple[int, dict[str, Any]]:
    """Return the worker that failed by itself, and its error in words; without such, the first.

    Args:
        failures: What Ray Train has of each worker by rank.
        purpose: What is done, in messages.
    """
    said = {rank: _said(rank, one, purpose) for rank, one in sorted(failures.items())}
    rank = min(said, key=lambda one: (said[one]["kind"] != "usage", said[one]["is_echo"], one))
    return rank, said[rank]


def error_of(said: dict[str, Any]) -> TfdynoError:
    """Return an error from its words."""
    return Failure(**{name: said[name] for name in ("kind", "what", "why", "remedy")}).error


def fatal_of(error: Exception, purpose: str) -> TfdynoError:
    """Return what the last error of Ray Train means."""
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
    if cause is failure and not _is_of_ray(failure):
        why = f"{type(failure).__name__}: {failure}"
    else:
        why = PREEMPTED if getattr(cause, "preempted", False) else LOST
    return {
        "kind": "tool", "what": f"{purpose} failed in worker {rank}", "why": why, "remedy": "",
        "is_echo": False,
    }  # fmt: skip


def _is_of_ray(failure: Exception) -> bool:
    return any(kind.__name__ == "RayError" for kind in type(failure).__mro__)
