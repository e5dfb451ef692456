"""A serving plan as manifests of Kubernetes: Deployment, Service, autoscaler, disruption budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from tfdyno.core.base.units import significant
from tfdyno.core.deploy.serving_plan import claim_of
from tfdyno.render.base.yaml_text import Block, yaml_text
from tfdyno.render.serving import tfserving, triton
from tfdyno.render.serving.images import image_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.deploy.serving_plan import ServingPlan

GPU = "nvidia.com/gpu"
DRAIN_S = 10
"""Between a pod's end being asked for and its server being told: so long may the cluster go on
sending requests to it."""
GRACE_S = 45
SECURITY = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""What a container needs no more than."""
UTILISATION_PERCENT = 70
"""The share of the CPUs that are asked for, where no rate is known to scale by."""
METRIC = "tfdyno_requests_per_second"
"""That the autoscaler reads where the sizing tells a rate; an adapter makes it of a counter."""
_RATES = {
    "tfserving": "sum(rate(:tensorflow:serving:request_count[1m])) by (pod)",
    "triton": "sum(rate(nv_inference_request_success[1m])) by (pod)",
}
_CALM_S = 300
"""So long the load has to be lower before a replica goes."""


class Deployed(Protocol):
    """What Kubernetes calls by a name."""

    @property
    def resource_name(self) -> str:
        """The name as Kubernetes takes it."""

    @property
    def namespace(self) -> str:
        """Empty: the one that ``kubectl`` has."""


def render_kubernetes(plan: ServingPlan) -> dict[str, str]:
    """Return the manifests that ``kubectl apply`` takes, by their file's path.

    Raises:
        UsageError: The storage is no claim, or the name none in Kubernetes.
    """
    documents = [deployment(plan), service(plan, _ports(plan)), disruption_budget(plan)]
    if plan.server == "tfserving":
        documents.insert(0, config_map(plan))
    if plan.scales:
        documents.append(autoscaler(plan))
    files = {"kubernetes.yaml": yaml_text(*documents, head=_head(plan))}
    if plan.server == "triton":
        path = f"models/{plan.name}/config.pbtxt"
        files[path] = triton.config(plan)
    return files


def deployment(plan: ServingPlan) -> dict[str, Any]:
    """Return the pods, of which a new one answers before an old one goes."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(plan),
        "spec": {
            # An autoscaler sets it; an apply of this file must not set it back.
            "replicas": None if plan.scales else plan.replicas_min,
            "selector": {"matchLabels": labels(plan)},
            "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "template": {
                "metadata": {"labels": labels(plan), "annotations": _scraped(plan)},
                "spec": pod_spec(plan),
            },
        },
    }


def pod_spec(plan: ServingPlan) -> dict[str, Any]:
    """Return the pod of one replica."""
    own = [] if plan.server == "triton" else [("config", tfserving.CONFIG, "")]
    claim, folder = claim_of(plan.storage) if plan.storage else ("", "")
    mounts = [*own, *([("models", tfserving.MODELS, folder)] if claim else [])]
    kept = {"persistentVolumeClaim": {"claimName": claim, "readOnly": True}}
    volumes = [
        {"name": "config", "configMap": {"name": plan.resource_name}} if own else None,
        {"name": "models", **kept} if claim else None,
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "256Mi"}},
    ]
    container = {
        "name": plan.server,
        "image": image_of(plan),
        "args": _arguments(plan),
        "ports": [{"name": name, "containerPort": port} for name, port in _ports(plan).items()],
        "resources": resources(plan),
        **_probes(plan),
        "lifecycle": {"preStop": {"exec": {"command": ["sleep", str(DRAIN_S)]}}},
        "securityContext": SECURITY,
        "volumeMounts": [
            *(
                {"name": name, "mountPath": path, "subPath": part or None, "readOnly": True}
                for name, path, part in mounts
            ),
            {"name": "shm", "mountPath": "/dev/shm"},
        ],
    }
    return {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": GRACE_S,
        "containers": [container],
        "volumes": [one for one in volumes if one],
    }


def resources(plan: ServingPlan) -> dict[str, Any]:
    """Return what a replica asks for and may take; CPUs have no limit, which would stop it."""
    memory = f"{plan.memory_bytes >> 20}Mi"
    cards = {GPU: str(plan.gpus)} if plan.gpus else {}
    return {
        "requests": {"cpu": str(plan.cpus), "memory": memory, **cards},
        "limits": {"memory": memory, **cards},
    }


def service(plan: Deployed, by_name: Mapping[str, int]) -> dict[str, Any]:
    """Return one address for all replicas, inside the cluster, with its ports by their names."""
    ports = [{"name": name, "port": port, "targetPort": name} for name, port in by_name.items()]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(plan),
        "spec": {"selector": labels(plan), "ports": ports},
    }


def autoscaler(plan: ServingPlan) -> dict[str, Any]:
    """Scale by the rate that one replica answers in time where it is known, else by the CPUs."""
    rate = plan.target_requests_per_s
    per_pod = {
        "type": "Pods",
        "pods": {
            "metric": {"name": METRIC},
            "target": {"type": "AverageValue", "averageValue": quantity(rate)},
        },
    }
    of_cpus = {"type": "Utilization", "averageUtilization": UTILISATION_PERCENT}
    by_cpus = {"type": "Resource", "resource": {"name": "cpu", "target": of_cpus}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": metadata(plan),
        "spec": {
            "scaleTargetRef": {
                "apiVersion": "apps/v1", "kind": "Deployment", "name": plan.resource_name,
            },
            "minReplicas": plan.replicas_min,
            "maxReplicas": plan.replicas_max,
            "metrics": [per_pod if rate else by_cpus],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": _CALM_S}},
        },
    }  # fmt: skip


def disruption_budget(plan: Deployed) -> dict[str, Any]:
    """Let nodes be emptied one replica at a time."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(plan),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels(plan)}},
    }


def config_map(plan: ServingPlan) -> dict[str, Any]:
    """Return the files that TensorFlow Serving reads."""
    files = tfserving.tfserving_config(plan)
    data = {path.removeprefix("config/"): Block(text) for path, text in files.items()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(plan), "data": data}


def quantity(number: float) -> str:
    """Return a number as Kubernetes writes it: thousandths with an ``m``."""
    thousandths = max(1, round(number * 1000))
    return str(thousandths // 1000) if thousandths % 1000 == 0 else f"{thousandths}m"


def _head(plan: ServingPlan) -> tuple[str, ...]:
    lines = ["kubectl apply --filename THIS"]
    where = f"{tfserving.MODELS}/{plan.name}"
    inside = (
        f"{plan.version}/saved_model.pb"
        if plan.server == "tfserving"
        else f"config.pbtxt and {plan.version}/{triton.PLATFORMS[plan.kind][1]}"
    )
    place = f"{plan.storage} holds {plan.name}/" if plan.storage else f"the image holds {where}/"
    lines.append(f"{place} with {inside}")
    if plan.scales and plan.target_requests_per_s:
        rate = significant(plan.target_requests_per_s)
        lines.append(f"Replicas: one for each {rate} requests/s, by the metric {METRIC}, which")
        lines.append(f"prometheus-adapter has to make of: {_RATES[plan.server]}")
    elif plan.scales and plan.gpus:
        lines.append("Replicas: by CPU, which says little of a GPU; give --size for a rate")
    return (*lines, *(triton.notes(plan) if plan.server == "triton" else ()))


def _arguments(plan: ServingPlan) -> list[str]:
    return tfserving.arguments(plan) if plan.server == "tfserving" else triton.arguments(plan)


def _ports(plan: ServingPlan) -> dict[str, int]:
    if plan.server == "tfserving":
        return {"http": tfserving.REST, "grpc": tfserving.GRPC}
    return {"http": triton.HTTP, "grpc": triton.GRPC, "metrics": triton.METRICS}


def _probes(plan: ServingPlan) -> dict[str, Any]:
    """Allow ten minutes for loading; then it is ready within 5 s, and started again after 30."""
    if plan.server == "tfserving":
        ready = alive = f"/v1/models/{plan.name}"
    else:
        ready, alive = "/v2/health/ready", "/v2/health/live"
    return {
        "startupProbe": probe(ready, every_s=5, failures=120),
        "readinessProbe": probe(ready, every_s=5, failures=1),
        "livenessProbe": probe(alive, every_s=10, failures=3),
    }


def probe(path: str, *, every_s: int, failures: int) -> dict[str, Any]:
    """Return what Kubernetes asks a container on its port ``http``, and how long it is patient."""
    return {
        "httpGet": {"path": path, "port": "http"},
        "periodSeconds": every_s,
        "timeoutSeconds": 3,
        "failureThreshold": failures,
    }


def _scraped(plan: ServingPlan) -> dict[str, str]:
    """Return the annotations by which many installations of Prometheus find pods."""
    is_tfserving = plan.server == "tfserving"
    return {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": str(tfserving.REST if is_tfserving else triton.METRICS),
        "prometheus.io/path": tfserving.METRICS if is_tfserving else "/metrics",
    }


def labels(plan: Deployed) -> dict[str, str]:
    """Return the labels by which its parts find each other."""
    return {"app.kubernetes.io/name": plan.resource_name}


def metadata(plan: Deployed) -> dict[str, Any]:
    """Return the name and labels that each of its parts has."""
    return {
        "name": plan.resource_name,
        "namespace": plan.namespace or None,
        "labels": {**labels(plan), "app.kubernetes.io/managed-by": "tfdyno"},
    }
