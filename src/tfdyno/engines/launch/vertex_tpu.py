"""The TPUs of one machine of Vertex AI."""

from __future__ import annotations

import csv
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.settings import one_of

if TYPE_CHECKING:
    from tfdyno.core.cluster.launch_plan import LaunchPlan

TPU = "TPUs of the one node instead of GPUs, as v5e-8; train with --set strategy=tpu"
TABLE = Path(__file__).parents[1] / "data" / "vertex_tpus.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tpu:
    """A machine with TPUs."""

    machine: str
    chips: int
    topology: str
    """As the service writes it: ``2x4``."""


@functools.cache
def tpus() -> dict[str, Tpu]:
    """Those that TensorFlow can train on, by name."""
    with TABLE.open(encoding="utf-8", newline="") as lines:
        return {
            row["name"]: Tpu(
                machine=row["machine"], chips=int(row["chips"]), topology=row["topology"]
            )
            for row in csv.DictReader(lines, strict=True)
        }


def tpu_of(plan: LaunchPlan) -> Tpu | None:
    """The TPUs that a plan asks for; None: none.

    Raises:
        UsageError: They are not known, or do not go with the rest of the plan.
    """
    name = plan.option("tpu")
    if not name:
        return None
    found = tpus()[one_of(name, tpus(), "tpu")]
    if plan.nodes > 1:
        what = f"--with tpu={name} does not go with --nodes {plan.nodes}"
        why = "TPUs of one machine are trained by one process"
        raise UsageError(what, why=why, remedy="leave --nodes out")
    if plan.gpus_per_node or plan.option("machine"):
        given = "--gpus-per-node" if plan.gpus_per_node else "--with machine"
        raise UsageError(f"--with tpu={name} does not go with {given}", remedy="leave one out")
    return found
