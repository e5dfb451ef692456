"""A launch plan in the words of Ray Train, as the process that starts it there reads it.

The names are those of ``ScalingConfig``, ``RunConfig`` and ``FailureConfig`` of Ray 2.60. With
``--with kuberay=rayjob`` it is a manifest of KubeRay instead: ``render_kuberay``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.core.cluster.launch_plan import node_words
from tfdyno.render.base.yaml_text import yaml_text
from tfdyno.render.launch import kubernetes as render_kubernetes
from tfdyno.render.launch.kuberay import render_kuberay

if TYPE_CHECKING:
    from tfdyno.core.cluster.launch_plan import LaunchPlan

KUBERAY = "kuberay"
MIN_NODES = "min_nodes"
KNOWN = {
    "address": "of a running cluster, host:6379; without it Ray runs on this machine",
    MIN_NODES: "not possible here: a training keeps the number of its nodes",
    KUBERAY: "rayjob, for a cluster of its own on Kubernetes; the settings below are for it",
    **{name: meaning for name, meaning in render_kubernetes.KNOWN.items() if name != "kind"},
}
"""Settings of the engine alone."""
FILES = "ray"
"""Folder in that of the run for what Ray Train keeps."""


def render_ray(plan: LaunchPlan) -> str:
    """Return the plan as YAML; raises ``UsageError`` where Ray cannot do what it asks."""
    _check_extra(plan)
    if plan.option(KUBERAY):
        return render_kuberay(plan)
    return yaml_text(ray_plan(plan), head=(f"{plan.name}: {plan.counted('worker')} of Ray Train",))


def ray_plan(plan: LaunchPlan) -> dict[str, Any]:
    """Return what Ray Train is asked for, and what each worker trains; raises ``UsageError``."""
    _check_extra(plan)
    resources = {
        "GPU": plan.gpus_per_node or None,
        "CPU": plan.cpus or None,
        "memory": plan.memory_bytes or None,
    }
    asked = {name: value for name, value in resources.items() if value}
    if "CPU" not in asked:
        asked["CPU"] = 1  # Ray's own default, where something else is asked for as well
    return {
        "address": plan.option("address") or None,
        "scaling_config": {
            "num_workers": plan.nodes,
            "use_gpu": plan.gpus_per_node > 0,
            "resources_per_worker": asked,
            "placement_strategy": "SPREAD",  # each on a node of its own, where there are so many
        },
        "run_config": {
            "name": plan.name,
            "storage_path": str(Path(plan.folder or ".", plan.output, FILES)),
            "failure_config": {"max_failures": plan.restarts},
        },
        "worker": {
            "words": list(node_words(replace(plan, port=0))[3:]),
            "folder": plan.folder,
            "output": plan.output,
            "environment": dict(plan.environment),
            "port": plan.port,
            "purpose": f"training {plan.reference}",
        },
    }


def _check_extra(plan: LaunchPlan) -> None:
    """Refuse what cannot be, and what a cluster that is there already does not look at."""
    if least := plan.option(MIN_NODES):
        what = f"--with {MIN_NODES}={least} is not possible"
        why = "MultiWorkerMirroredStrategy keeps its workers from the first step to the last"
        raise UsageError(what, why=why, remedy="leave it out; Ray waits for a node that is gone")
    for name, value in plan.extra:
        if name not in ("address", KUBERAY) and not plan.option(KUBERAY):
            what = f"--with {name}={value} is for KubeRay"
            raise UsageError(what, remedy="add --with kuberay=rayjob, or leave it out")
