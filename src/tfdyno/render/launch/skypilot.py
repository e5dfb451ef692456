"""A launch plan as a task of SkyPilot."""

from __future__ import annotations

import csv
import functools
import shlex
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.units import GIB
from tfdyno.core.cluster.launch_plan import node_words
from tfdyno.render.base.yaml_text import yaml_text
from tfdyno.render.launch.managed import RUNS, is_spot

if TYPE_CHECKING:
    from tfdyno.core.cluster.launch_plan import LaunchPlan

KNOWN = {
    "infra": "where: aws, gcp/us-central1, kubernetes, …",
    "spot": "true: machines that may be taken away; start it with sky jobs launch",
    "bucket": "address of a bucket that all nodes mount, s3://… or gs://…",
    "disk_gib": "of each node",
    "setup": "command that installs, instead of pip install",
}
"""Settings of the engine alone."""
TABLE = Path(__file__).parents[1] / "tables" / "skypilot_gpus.csv"
MOUNT = PurePosixPath("/tfdyno-run")
_CPU_SETUP = "python3 -m pip install 'tfdyno[tf]'"
_GPU_SETUP = "python3 -m pip install tfdyno 'tensorflow[and-cuda]' keras"
GRACE_S = 180


def render_skypilot(plan: LaunchPlan) -> str:
    """Return the task that ``sky launch`` or ``sky jobs launch`` takes.

    Raises:
        UsageError: The plan has a card that SkyPilot does not name, or no bucket where one is due.
    """
    spot = is_spot(plan)
    bucket = plan.option("bucket")
    if not bucket and (plan.nodes > 1 or spot or plan.restarts):
        raise UsageError(
            "the nodes need a folder that outlives them and that all of them see",
            why="checkpoints lie in it, and what they agree upon",
            remedy="name a bucket with --with bucket=s3://NAME",
        )
    start = " ".join(_start(plan))
    head = (f"{plan.name}: {plan.counted()}; {start} THIS",)
    return yaml_text(task(plan, spot=spot), head=head)


def submit_words(plan: LaunchPlan) -> tuple[str, ...]:
    """Return what stands in front of the file to start it."""
    return (*_start(plan), "--yes", "--detach-run")


def _start(plan: LaunchPlan) -> tuple[str, ...]:
    """Only a managed job is begun again: after a failure, or when its machine is taken away."""
    is_managed = plan.option("spot") == "true" or plan.restarts > 0
    return ("sky", "jobs", "launch") if is_managed else ("sky", "launch")


def task(plan: LaunchPlan, *, spot: bool) -> dict[str, Any]:
    """Return the fields of the task."""
    bucket = plan.option("bucket")
    mounts = {str(MOUNT): {"source": bucket, "mode": "MOUNT"}} if bucket else None
    return {
        "name": plan.name,
        "num_nodes": plan.nodes,
        "resources": _resources(plan, spot=spot),
        "workdir": plan.folder or ".",
        "envs": dict(plan.environment) or None,
        "file_mounts": mounts,
        "setup": plan.option("setup") or (_GPU_SETUP if plan.gpus_per_node else _CPU_SETUP),
        "run": _command(plan),
    }


def accelerator(slug: str) -> str:
    """Return what SkyPilot calls a card; raises ``UsageError`` where it has no name."""
    names = _names()
    if slug not in names:
        what = f"SkyPilot's name of {slug} is not known here"
        known = ", ".join(sorted(names))
        raise UsageError(what, remedy=f"choose among {known}")
    return names[slug]


def _resources(plan: LaunchPlan, *, spot: bool) -> dict[str, Any]:
    if plan.gpus_per_node and not plan.gpu:
        what = f"SkyPilot has to know which {plan.gpus_per_node} GPUs"
        raise UsageError(what, remedy="name the card with --gpu SLUG")
    disk, again = plan.option("disk_gib"), plan.restarts
    if disk and not disk.isdecimal():
        raise UsageError(f"--with disk_gib={disk} is not possible", remedy="give a whole number")
    return {
        "infra": plan.option("infra") or None,
        "accelerators": f"{accelerator(plan.gpu)}:{plan.gpus_per_node}" if plan.gpu else None,
        "cpus": f"{plan.cpus}+" if plan.cpus else None,
        "memory": f"{-(-plan.memory_bytes // GIB)}+" if plan.memory_bytes else None,
        "disk_size": int(disk) if disk else None,
        "use_spot": spot or None,
        "image_id": f"docker:{plan.image}" if plan.image else None,
        "job_recovery": {"max_restarts_on_errors": again} if again else None,
    }


def run_folder(plan: LaunchPlan) -> str:
    """Return where the nodes see the run: in the bucket, where there is one.

    Raises:
        UsageError: The plan names a folder that is not in the bucket.
    """
    output = PurePosixPath(plan.output)
    if not plan.option("bucket") or output.is_relative_to(MOUNT):
        return plan.output
    if output.is_absolute() or ".." in output.parts:
        what = f"--output {plan.output} does not lie in the bucket"
        raise UsageError(what, remedy=f"name it without the first /; it is put below {MOUNT}")
    inside = output.relative_to(RUNS) if output.is_relative_to(RUNS) else output
    return str(MOUNT / inside)


def _command(plan: LaunchPlan) -> str:
    command = shlex.join(node_words(plan, output=run_folder(plan)))
    if not plan.time_limit_s:
        return command
    # SkyPilot itself has no limit of time.
    limit_s = round(plan.time_limit_s)
    return f"timeout --signal=TERM --kill-after={GRACE_S} {limit_s} {command}"


@functools.cache
def _names() -> dict[str, str]:
    with TABLE.open(encoding="utf-8", newline="") as lines:
        return {row["gpu"]: row["name"] for row in csv.DictReader(lines, strict=True)}
