"""On how many devices and in how many processes a model is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Model, Strategy


def replicas(model: Model) -> int:
    """Return on how many devices a step of the model runs at once."""
    strategy = getattr(model, "distribute_strategy", None)
    return int(getattr(strategy, "num_replicas_in_sync", 1))


def worker_count(strategy: Strategy) -> int:
    """Return in how many processes a strategy trains; None is one."""
    extended = getattr(strategy, "extended", None)
    return max(1, int(getattr(extended, "_num_workers", 1) or 1))
