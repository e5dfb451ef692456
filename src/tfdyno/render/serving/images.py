"""Which container serves which kind of model: a table with sources."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from tfdyno.core.deploy.serving_plan import ServingPlan

TABLE = Path(__file__).parents[1] / "tables" / "serving_images.csv"


def image_of(plan: ServingPlan) -> str:
    """Return the container that the user named, else the pinned one; raises ``UsageError``."""
    return plan.image or _row(plan)["image"]


def last_release(plan: ServingPlan) -> str:
    """Release after which the server no longer takes such models; empty: it still does."""
    return _row(plan)["last"]


def vllm_image() -> str:
    """Return the container of vLLM that is pinned."""
    return next(row["image"] for row in _rows() if row["server"] == "vllm")


def _rows() -> list[dict[str, str]]:
    with TABLE.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, strict=True))


def _row(plan: ServingPlan) -> dict[str, str]:
    device = "gpu" if plan.gpus else "cpu"
    rows = _rows()
    for row in rows:
        if (row["server"], row["kind"], row["device"]) == (plan.server, plan.kind, device):
            return row
    if any((row["server"], row["kind"]) == (plan.server, plan.kind) for row in rows):
        raise UsageError("a TensorRT engine needs the GPU it was built for", remedy="say --gpus 1")
    kinds = " or ".join(sorted({row["kind"] for row in rows if row["server"] == plan.server}))
    raise UsageError(
        f"--render {plan.engine} does not take a model of the kind {plan.kind}",
        why=f"its server takes {kinds}",
        remedy="export the model for it (tfdyno export), or render another server",
    )
