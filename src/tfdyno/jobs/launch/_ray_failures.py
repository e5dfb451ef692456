"""What the failures of Ray Train's workers mean, in words; Ray itself is not imported."""

from __future__ import annotations

from tfdyno.core.base.errors import Failure, TfdynoError, ToolError, UsageError

LOST = "its Ray worker has died: it was killed, ran out of memory, or its machine is gone"
PREEMPTED = "its machine is taken away"


class NodeFailed(Exception):  # noqa: N818  (it is what happened)
    """The training of a worker has failed: how, and whether it only lost another one.

    Ray carries it to the process that decides what follows.
    """

    def __str__(self) -> str:
        """Write it as a sentence, for Ray's own logs."""
        return str(self.args[0].error)


class Fatal(Exception):  # noqa: N818  (it is what happened)
    """Nothing would be mended by another try; its argument is the failure."""


def culprit_of(failures: dict[int, Exception], purpose: str) -> tuple[int, Failure]:
    """Return the worker that failed by itself, and how; without such, the first.

    Args:
        failures: What Ray Train has of each worker by rank.
        purpose: What is done, in messages.
    """
    told = {rank: _told(rank, one, purpose) for rank, one in failures.items()}
    rank = min(told, key=lambda one: (told[one][0].kind != "usage", told[one][1], one))
    return rank, told[rank][0]


def fatal_of(error: Exception, purpose: str) -> TfdynoError:
    """Return what the last error of Ray Train means."""
    if failures := getattr(error, "worker_failures", None):
        return culprit_of(failures, purpose)[1].error
    inner = getattr(error, "controller_failure", error)
    if isinstance(inner, Fatal):
        failure: Failure = inner.args[0]
        return failure.error
    words = " ".join(str(inner).split())
    if "No module named 'tfdyno'" in words:
        remedy = "install it there, the same version as here"
        return UsageError("tfdyno is not installed on the nodes of the cluster", remedy=remedy)
    return ToolError(f"{purpose} failed in Ray Train", why=words or type(inner).__name__)


def _told(rank: int, failure: Exception, purpose: str) -> tuple[Failure, bool]:
    """Return how a worker failed, and whether it only lost another one."""
    if isinstance(failure, NodeFailed):
        said, is_echo = failure.args
        return said, is_echo
    cause = getattr(failure, "health_check_failure", failure)
    if cause is failure and not _is_of_ray(failure):
        why = f"{type(failure).__name__}: {failure}"
    else:
        why = PREEMPTED if getattr(cause, "preempted", False) else LOST
    return Failure(kind="tool", what=f"{purpose} failed in worker {rank}", why=why), False


def _is_of_ray(failure: Exception) -> bool:
    return any(kind.__name__ == "RayError" for kind in type(failure).__mro__)
