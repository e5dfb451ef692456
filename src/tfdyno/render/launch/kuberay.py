"""A launch plan as a RayJob of KubeRay: a cluster of its own, in which ``tfdyno launch`` runs.

The head has no GPU and trains nothing: the command runs there, and each pod of the workers is one
node of the plan. Where the head is lost, KubeRay makes a new cluster, and the same command goes on
from the newest checkpoint.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.settings import one_of
from tfdyno.core.train.training import seconds_text
from tfdyno.render.base.yaml_text import yaml_text
from tfdyno.render.launch.kubernetes import check_pods, metadata, plain, pod_spec

if TYPE_CHECKING:
    from tfdyno.core.cluster.launch_plan import LaunchPlan

KINDS = ("rayjob",)
RAY_VERSION = "2.60.0"
"""That the image holds: the one of the extra ``ray``."""
GROUP = "node"
PORTS = {"gcs-server": 6379, "dashboard": 8265, "client": 10001}
"""The ports of the head, as KubeRay expects them."""
HEAD = {"cpu": "1", "memory": "4Gi"}
"""What Ray's own services and the process that watches the training need."""


def render_kuberay(plan: LaunchPlan) -> str:
    """Return the manifest that ``kubectl apply`` takes.

    Raises:
        UsageError: The plan lacks what pods need: an image and a claim.
    """
    one_of(plan.option("kuberay"), KINDS, "kuberay")
    if address := plan.option("address"):
        what = f"--with address={address} and kuberay do not go together"
        raise UsageError(what, remedy="leave one out: a RayJob has a cluster of its own")
    check_pods(plan, "KubeRay needs an image with tfdyno[ray] in it", needs_claim=True)
    head = (f"{plan.name}: {plan.counted()}; kubectl apply --filename THIS",)
    return yaml_text(ray_job(plan), head=head)


def ray_job(plan: LaunchPlan) -> dict[str, Any]:
    """Return a RayJob of the plan."""
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": metadata(plan),
        "spec": {
            # KubeRay puts it into a command of a pod, in which $(NAME) means a variable.
            "entrypoint": plain(shlex.join(entry_words(plan))),
            "submissionMode": "K8sJobMode",
            "shutdownAfterJobFinishes": True,
            "backoffLimit": plan.restarts,
            "rayClusterSpec": {
                "rayVersion": RAY_VERSION,
                "headGroupSpec": {
                    "rayStartParams": {"num-cpus": "0"},
                    "template": {"spec": _head(plan)},
                },
                "workerGroupSpecs": [
                    {
                        "groupName": GROUP,
                        "replicas": plan.nodes,
                        "minReplicas": plan.nodes,
                        "maxReplicas": plan.nodes,
                        "rayStartParams": {},
                        "template": {"spec": _pod(plan, "ray-worker")},
                    }
                ],
            },
        },
    }


def entry_words(plan: LaunchPlan) -> tuple[str, ...]:
    """Return what runs in the cluster: the same plan, with the cluster that it finds itself in."""
    words = [plan.python, "-m", "tfdyno", "launch", plan.reference, "--on", "ray"]
    words += ["--nodes", str(plan.nodes), "--gpus-per-node", str(plan.gpus_per_node)]
    given = {
        "--workdir": plan.folder,
        "--output": plan.output,
        "--restarts": str(plan.restarts or ""),
        "--time-limit": seconds_text(plan.time_limit_s) if plan.time_limit_s else "",
        "--port": str(plan.port or ""),
        "--name": plan.name,
    }
    for name, value in given.items():
        words += [name, value] if value else []
    for name, value in plan.environment:
        words += ["--env", f"{name}={value}"]
    words += plan.options
    return (*words, "--", *plan.script_arguments) if plan.script_arguments else tuple(words)


def _pod(plan: LaunchPlan, name: str) -> dict[str, Any]:
    """Return a pod of the plan, in which KubeRay starts Ray."""
    pod = pod_spec(plan)
    (container,) = pod["containers"]
    kept = {key: container[key] for key in ("image", "workingDir", "resources", "volumeMounts")}
    pod = {key: value for key, value in pod.items() if key != "restartPolicy"}  # KubeRay's own
    return {**pod, "containers": [{"name": name, **kept}]}


def _head(plan: LaunchPlan) -> dict[str, Any]:
    """Return the pod of the head: on any node, without GPUs."""
    pod = _pod(plan, "ray-head")
    (container,) = pod["containers"]
    ports = [{"name": name, "containerPort": port} for name, port in PORTS.items()]
    head = {**container, "resources": {"requests": HEAD}, "ports": ports}
    return {**pod, "nodeSelector": None, "containers": [head]}
