"""A launch plan as a CustomJob of Vertex AI: a chief, and workers that are its equals."""

from __future__ import annotations

import csv
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.settings import one_of
from tfdyno.core.cluster.launch_plan import node_words
from tfdyno.render.launch import managed

if TYPE_CHECKING:
    from tfdyno.core.cluster.launch_plan import LaunchPlan

KNOWN = {
    "bucket": "where the run lies, gs://NAME or gs://NAME/FOLDER",
    "region": "where it runs",
    "machine": managed.MACHINE,
    "tpu": "TPUs of the one node instead of GPUs, as v5e-8; train with --set strategy=tpu",
    "spot": managed.SPOT,
    "disk_gib": "of each node",
    "service_account": "that the nodes act as",
}
"""Settings of the engine alone."""
SOURCE = "google-cloud-aiplatform 2.7.0 (2026-11)"
BUCKETS = PurePosixPath("/gcs")
"""Where Vertex AI shows buckets as folders, on all nodes."""
EXAMPLE = "n1-standard-8"
TPUS = Path(__file__).parents[1] / "tables" / "vertex_tpus.csv"
"""Those of one machine, which TensorFlow can train on."""


def render_vertex(plan: LaunchPlan) -> str:
    """Return the file that ``gcloud ai custom-jobs create --config`` takes.

    Raises:
        UsageError: The plan lacks what nodes need, or no machine with its GPUs is known.
    """
    start = f"{' '.join(submit_words(plan))} THIS"
    return managed.job_file(plan, job_spec(plan), start, service="Vertex AI", source=SOURCE)


def submit_words(plan: LaunchPlan) -> tuple[str, ...]:
    """Return what stands in front of the file to start it."""
    region = plan.option("region")
    words = ("gcloud", "ai", "custom-jobs", "create", f"--display-name={plan.name}")
    return (*words, *([f"--region={region}"] if region else []), "--config")


def run_folder(plan: LaunchPlan) -> str:
    """Return where the nodes see the run; raises ``UsageError`` where that is in no bucket."""
    return managed.folder_in(plan, BUCKETS / managed.address_parts(plan, "bucket", "gs://"))


def job_spec(plan: LaunchPlan) -> dict[str, Any]:
    """Return the fields of a ``CustomJobSpec``; raises ``UsageError``."""
    managed.check_image(plan)
    pool = _pool(plan)
    # The first pool is the chief's, and has one node; TF_CONFIG, which Vertex AI sets, says so.
    others = [{**pool, "replicaCount": plan.nodes - 1}] if plan.nodes > 1 else []
    return {
        "workerPoolSpecs": [{**pool, "replicaCount": 1}, *others],
        "scheduling": _scheduling(plan),
        "serviceAccount": plan.option("service_account") or None,
    }


def _pool(plan: LaunchPlan) -> dict[str, Any]:
    words = node_words(plan, output=run_folder(plan))
    variables = dict(plan.environment)  # of a name that is given twice the last one
    size_gib = managed.disk_gib(plan)
    return {
        "machineSpec": _machine(plan),
        "diskSpec": {"bootDiskSizeGb": size_gib} if size_gib else None,
        "containerSpec": {
            "imageUri": plan.image,
            "command": managed.in_folder(plan.folder, tuple(_plain(word) for word in words)),
            "env": [{"name": name, "value": _plain(value)} for name, value in variables.items()]
            or None,
        },
    }


def _machine(plan: LaunchPlan) -> dict[str, Any]:
    if tpu := tpu_of(plan):
        return {"machineType": tpu["machine"], "tpuTopology": tpu["topology"]}
    machine = {"machineType": managed.machine_name(plan, EXAMPLE)}
    if not plan.gpus_per_node:
        return machine
    kind = managed.accelerator(plan)
    return {**machine, "acceleratorType": kind, "acceleratorCount": plan.gpus_per_node}


def tpu_of(plan: LaunchPlan) -> dict[str, str] | None:
    """Return the TPUs that a plan asks for, as a row of their table; None: none.

    Raises:
        UsageError: They are not known, or do not go with the rest of the plan.
    """
    name = plan.option("tpu")
    if not name:
        return None
    with TPUS.open(encoding="utf-8", newline="") as lines:
        known = {row["name"]: row for row in csv.DictReader(lines, strict=True)}
    found = known[one_of(name, known, "tpu")]
    if plan.nodes > 1:
        what = f"--with tpu={name} does not go with --nodes {plan.nodes}"
        why = "TPUs of one machine are trained by one process"
        raise UsageError(what, why=why, remedy="leave --nodes out")
    if plan.gpus_per_node or plan.option("machine"):
        given = "--gpus-per-node" if plan.gpus_per_node else "--with machine"
        raise UsageError(f"--with tpu={name} does not go with {given}", remedy="leave one out")
    return found


def _plain(text: str) -> str:
    """Escape for Vertex AI, where ``$(NAME)`` is a variable and ``$$(NAME)`` these characters."""
    return text.replace("$(", "$$(")


def _scheduling(plan: LaunchPlan) -> dict[str, Any]:
    return {
        "timeout": f"{round(plan.time_limit_s)}s" if plan.time_limit_s else None,
        "strategy": "SPOT" if managed.is_spot(plan) else None,
        # How often, Vertex AI decides; a worker that is started alone would find the others gone.
        "restartJobOnWorkerRestart": True if plan.restarts else None,
        "disableRetries": None if plan.restarts else True,
    }
