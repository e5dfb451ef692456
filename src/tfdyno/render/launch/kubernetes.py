"""A launch plan as manifests of Kubernetes: a JobSet, or a TrainJob of Kubeflow with its runtime.

Both end in the same pods: an indexed Job in a JobSet, whose pods find each other by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.settings import one_of
from tfdyno.core.base.units import MIB
from tfdyno.core.cluster.cluster import ADDRESS, PORT
from tfdyno.core.cluster.launch_plan import node_words
from tfdyno.render.base.yaml_text import yaml_text

if TYPE_CHECKING:
    from tfdyno.core.cluster.launch_plan import LaunchPlan

KNOWN = {
    "kind": "jobset or trainjob",
    "namespace": "where it runs",
    "claim": "PersistentVolumeClaim (ReadWriteMany) that is mounted at --workdir",
    "queue": "LocalQueue of Kueue",
    "selector": "label of the nodes, key:value",
    "service_account": "of the pods",
    "pull_secret": "for the image",
}
"""Settings of the engine alone."""
KINDS = ("jobset", "trainjob")
NODE = "node"
"""The name of the replicated job: Kubeflow's trainer expects it to be called so."""
GPU = "nvidia.com/gpu"
GRACE_S = 180
"""The time for the last checkpoint of a pod that is to go."""
WRONG_USE = 2


def render_kubernetes(plan: LaunchPlan) -> str:
    """Return the manifests that ``kubectl apply`` takes.

    Raises:
        UsageError: The plan lacks what pods need: an image, and a claim where there are several.
    """
    kind = one_of(plan.option("kind", KINDS[0]), KINDS, "kind")
    needs_claim = plan.nodes > 1 or plan.restarts > 0
    check_pods(plan, "Kubernetes needs an image with tfdyno in it", needs_claim=needs_claim)
    head = (f"{plan.name}: {plan.counted()}; kubectl apply --filename THIS",)
    if kind == "trainjob":
        return yaml_text(training_runtime(plan), train_job(plan), head=head)
    return yaml_text(job_set(plan), head=head)


def check_pods(plan: LaunchPlan, needs_image: str, *, needs_claim: bool) -> None:
    """Refuse a plan without the image of its pods, or the claim; raises ``UsageError``."""
    if not plan.image:
        raise UsageError(needs_image, remedy="name it with --image")
    if needs_claim and not plan.option("claim"):
        raise UsageError(
            "the pods need a volume that all of them see",
            why="checkpoints lie in it, and what they agree upon",
            remedy="name a PersistentVolumeClaim with --with claim=NAME",
        )


def job_set(plan: LaunchPlan) -> dict[str, Any]:
    """Return a JobSet of the plan."""
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": metadata(plan),
        "spec": _job_set_spec(plan, pod_spec(plan)),
    }


def training_runtime(plan: LaunchPlan) -> dict[str, Any]:
    """Return what Kubeflow's trainer makes the JobSet of a TrainJob from."""
    spec = _job_set_spec(plan, pod_spec(plan))
    spec["replicatedJobs"][0]["template"]["metadata"] = {
        "labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    }
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": plan.name, "namespace": plan.option("namespace") or None},
        "spec": {"mlPolicy": {"numNodes": plan.nodes}, "template": {"spec": spec}},
    }


def train_job(plan: LaunchPlan) -> dict[str, Any]:
    """Return a TrainJob of the plan."""
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": metadata(plan),
        "spec": {
            "runtimeRef": {
                "apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": plan.name,
            },
            "trainer": {
                "image": plan.image,
                "command": _words(plan),
                "numNodes": plan.nodes,
                "resourcesPerNode": _resources(plan),
                "env": _variables(plan),
            },
        },
    }  # fmt: skip


def pod_spec(plan: LaunchPlan) -> dict[str, Any]:
    """Return the pod of one node."""
    claim, secret = plan.option("claim"), plan.option("pull_secret")
    memory = {"medium": "Memory"}  # 64 MiB, the usual, are too few for NCCL and for tf.data
    container = {
        "name": NODE,
        "image": plan.image,
        "command": _words(plan),
        "workingDir": plan.folder or None,
        "env": _variables(plan),
        "ports": [{"containerPort": plan.port or PORT}],
        "resources": _resources(plan),
        "volumeMounts": [
            {"name": "shm", "mountPath": "/dev/shm"},
            *([{"name": "run", "mountPath": plan.folder}] if claim else []),
        ],
    }
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE_S,
        "serviceAccountName": plan.option("service_account") or None,
        "imagePullSecrets": [{"name": secret}] if secret else None,
        "nodeSelector": _selector(plan),
        "containers": [container],
        "volumes": [
            {"name": "shm", "emptyDir": memory},
            *([{"name": "run", "persistentVolumeClaim": {"claimName": claim}}] if claim else []),
        ],
    }


def job_spec(plan: LaunchPlan, pod: dict[str, Any]) -> dict[str, Any]:
    """Return the indexed Job: all pods, or none."""
    wrong_use = {"containerName": NODE, "operator": "In", "values": [WRONG_USE]}
    return {
        "completionMode": "Indexed",
        "parallelism": plan.nodes,
        "completions": plan.nodes,
        "backoffLimit": 0,  # the JobSet starts all of them again
        "activeDeadlineSeconds": round(plan.time_limit_s) or None,
        "podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": wrong_use}]},
        "template": {"spec": pod},
    }


def _job_set_spec(plan: LaunchPlan, pod: dict[str, Any]) -> dict[str, Any]:
    wrong = {"action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}
    return {
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
        "failurePolicy": {"maxRestarts": plan.restarts, "rules": [wrong]},
        "replicatedJobs": [
            {"name": NODE, "replicas": 1, "template": {"spec": job_spec(plan, pod)}}
        ],
    }


def metadata(plan: LaunchPlan) -> dict[str, Any]:
    """Name, namespace and queue of a job."""
    queue = plan.option("queue")
    return {
        "name": plan.name,
        "namespace": plan.option("namespace") or None,
        "labels": {"kueue.x-k8s.io/queue-name": queue} if queue else None,
    }


def _variables(plan: LaunchPlan) -> list[dict[str, str]]:
    """Return those of the user, and where the pods of the indexed Job are."""
    own = [(ADDRESS, f"{plan.name}-{NODE}-0-{{rank}}.{plan.name}")]
    values = dict((*own, *plan.environment))  # of a name that is given twice the last one
    return [{"name": name, "value": plain(value)} for name, value in values.items()]


def _words(plan: LaunchPlan) -> list[str]:
    return [plain(word) for word in node_words(plan)]


def plain(text: str) -> str:
    """Write a text that stays as it is: Kubernetes reads ``$(NAME)`` as a variable, ``$$`` as $."""
    return text.replace("$", "$$")


def _resources(plan: LaunchPlan) -> dict[str, Any] | None:
    asked = {
        "cpu": str(plan.cpus) if plan.cpus else None,
        "memory": f"{-(-plan.memory_bytes // MIB)}Mi" if plan.memory_bytes else None,
    }
    requests = {name: value for name, value in asked.items() if value}
    limits = {"memory": requests["memory"]} if plan.memory_bytes else {}
    limits |= {GPU: str(plan.gpus_per_node)} if plan.gpus_per_node else {}
    return {"requests": requests or None, "limits": limits or None} if requests or limits else None


def _selector(plan: LaunchPlan) -> dict[str, str] | None:
    label = plan.option("selector")
    if not label:
        return None
    key, colon, value = label.partition(":")
    if not key or not colon or not value:
        what = f"--with selector={label} cannot be read"
        raise UsageError(
            what, remedy="write selector=key:value, as nvidia.com/gpu.product:NVIDIA-L4"
        )
    return {key: value}
