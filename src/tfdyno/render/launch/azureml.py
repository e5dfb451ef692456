"""A launch plan as a command job of Azure ML."""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.core.cluster.launch_plan import node_words
from tfdyno.render.launch import managed

if TYPE_CHECKING:
    from tfdyno.core.cluster.launch_plan import LaunchPlan

KNOWN = {
    "compute": "name of a compute cluster; without it serverless compute",
    "machine": f"{managed.MACHINE} (serverless compute alone)",
    "datastore": "where the run lies; workspaceblobstore if nothing is said",
    "workspace": "of Azure ML, where az has no usual one",
    "group": "resource group of the workspace",
    "experiment": "that the job is shown under",
    "spot": f"{managed.SPOT} (serverless compute alone)",
}
"""Settings of the engine alone."""
SOURCE = "azure-ai-ml 1.35.2 (2026-11)"
SCHEMA = "https://azuremlschemas.azureedge.net/latest/commandJob.schema.json"
RUN = "${{outputs.run}}"
"""The folder in which all nodes of Azure ML see the run."""
EXAMPLE = "Standard_DS3_v2"


def render_azureml(plan: LaunchPlan) -> str:
    """Return the file that ``az ml job create --file`` takes.

    Raises:
        UsageError: The plan lacks what nodes need, or no machine with its GPUs is known.
    """
    start = f"{' '.join(submit_words(plan))} THIS"
    return managed.job_file(plan, command_job(plan), start, service="Azure ML", source=SOURCE)


def submit_words(plan: LaunchPlan) -> tuple[str, ...]:
    """Return what stands in front of the file to start it."""
    given = {"--workspace-name": plan.option("workspace"), "--resource-group": plan.option("group")}
    words = [word for name, value in given.items() if value for word in (name, value)]
    return ("az", "ml", "job", "create", *words, "--file")


def run_folder(plan: LaunchPlan) -> str:
    """Return the folder of the run in the datastore: always the same one, so that a job goes on.

    Raises:
        UsageError: The plan names a folder that is not in a datastore.
    """
    store = plan.option("datastore", "workspaceblobstore")
    inside = managed.folder_in(plan, PurePosixPath("/") / managed.RUNS)
    return f"azureml://datastores/{store}/paths{inside}"


def command_job(plan: LaunchPlan) -> dict[str, Any]:
    """Return the fields of the job; raises ``UsageError``."""
    managed.check_image(plan)
    cluster, workers = plan.option("compute"), {"type": "tensorflow", "worker_count": plan.nodes}
    return {
        "$schema": SCHEMA,
        "type": "command",
        "display_name": plan.name,
        "experiment_name": plan.option("experiment") or None,
        "code": plan.folder or ".",
        "command": _command(plan),
        "environment": {"image": plan.image},
        "environment_variables": dict(plan.environment) or None,
        "outputs": {"run": {"type": "uri_folder", "mode": "rw_mount", "path": run_folder(plan)}},
        "compute": f"azureml:{cluster}" if cluster else None,
        "resources": _resources(plan, cluster),
        # TF_CONFIG, which Azure ML sets, says who is who.
        "distribution": workers if plan.nodes > 1 else None,
        "queue_settings": _queue(plan, cluster),
        "limits": {"timeout": round(plan.time_limit_s)} if plan.time_limit_s else None,
    }


def _command(plan: LaunchPlan) -> str:
    given = [*node_words(plan), *(value for _, value in plan.environment)]
    if any("${{" in word for word in given):
        what = "Azure ML would put something else for ${{"
        raise UsageError(what, remedy="leave it out of names, options and variables")
    return shlex.join(node_words(plan, output=RUN))


def _resources(plan: LaunchPlan, cluster: str) -> dict[str, Any]:
    if not cluster:
        name = managed.machine_name(plan, EXAMPLE)
        return {"instance_type": name, "instance_count": plan.nodes}
    if named := plan.option("machine"):
        what = f"--with machine={named} does not go with --with compute={cluster}"
        raise UsageError(what, why="a cluster has machines of its own", remedy="leave one out")
    return {"instance_count": plan.nodes}


def _queue(plan: LaunchPlan, cluster: str) -> dict[str, str] | None:
    if not managed.is_spot(plan):
        return None
    if cluster:
        what = f"--with spot=true does not go with --with compute={cluster}"
        raise UsageError(what, why="a cluster says so itself", remedy="leave one out")
    return {"job_tier": "spot"}
