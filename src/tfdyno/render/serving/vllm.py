"""The plan of a text server as a compose file for vLLM, and as manifests of Kubernetes."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.units import format_bytes
from tfdyno.core.deploy.serving_plan import claim_of
from tfdyno.render.base.yaml_text import yaml_text
from tfdyno.render.serving import kubernetes
from tfdyno.words.base.amounts import plural

if TYPE_CHECKING:
    from tfdyno.core.base.interval import Interval
    from tfdyno.core.deploy.language_model import TextServerPlan

PORT = 8000
"""In the container: what vLLM listens on."""
FOLDER = "/model"
TOKEN = "VLLM_API_KEY"
FLAGS = Path(__file__).parents[1] / "tables" / "vllm_flags.csv"
"""Options that are written, and where each is from."""
SHARED_MEMORY = "2Gi"
"""For what the processes of several cards tell each other."""
GRACE_S = 120
"""For requests that are being answered when a pod is to end."""
LOAD_S = 1800
"""The longest that loading a model may take."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def flags() -> dict[str, str]:
    """Return what each option is, by its name."""
    with FLAGS.open(encoding="utf-8", newline="") as lines:
        return {row["flag"]: row["what"] for row in csv.DictReader(lines, strict=True)}


def render_vllm(plan: TextServerPlan) -> dict[str, str]:
    """Return the files by their paths: for compose, and for a cluster that has storage.

    Beside the compose file the model lies as ``model``.

    Raises:
        UsageError: The storage is no claim, or the name none in Kubernetes.
    """
    token = f"${{{TOKEN}:-}}"
    if plan.host not in LOOPBACK:
        token = f"${{{TOKEN}:?clients have to send a token, since {plan.host} is no loopback}}"
    card = {"driver": "nvidia", "count": plan.gpus, "capabilities": ["gpu"]}
    address = f"[{plan.host}]" if ":" in plan.host else plan.host
    service: dict[str, Any] = {
        "image": plan.image,
        "entrypoint": ["vllm", "serve"],
        "command": [FOLDER, *arguments(plan)],
        "environment": {TOKEN: token, "HF_HUB_OFFLINE": "1"},
        "ports": [f"{address}:{plan.port}:{PORT}"],
        "volumes": [f"./model:{FOLDER}:ro"],
        "ipc": "host",
        "restart": "unless-stopped",
        "deploy": {"resources": {"reservations": {"devices": [card]}}},
    }
    document = {"name": plan.resource_name, "services": {"vllm": service}}
    files = {"compose.yaml": yaml_text(document, head=_head(plan))}
    if plan.storage:
        parts = (
            _deployment(plan),
            kubernetes.service(plan, {"http": PORT}),
            kubernetes.disruption_budget(plan),
        )
        files["kubernetes.yaml"] = yaml_text(*parts, head=_cluster_head(plan))
    return files


def _deployment(plan: TextServerPlan) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": kubernetes.metadata(plan),
        "spec": {
            "replicas": plan.replicas,
            "selector": {"matchLabels": kubernetes.labels(plan)},
            # A new pod would wait for cards that the old one has.
            "strategy": {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
            "template": {
                "metadata": {"labels": kubernetes.labels(plan)},
                "spec": _pod(plan),
            },
        },
    }


def _pod(plan: TextServerPlan) -> dict[str, Any]:
    claim, folder = claim_of(plan.storage)
    token = {"secretKeyRef": {"name": secret_of(plan), "key": "token"}}
    model = {"name": "model", "mountPath": FOLDER, "subPath": folder or None, "readOnly": True}
    container = {
        "name": "vllm",
        "image": plan.image,
        "command": ["vllm", "serve"],
        "args": [FOLDER, *arguments(plan)],
        "env": [{"name": TOKEN, "valueFrom": token}, {"name": "HF_HUB_OFFLINE", "value": "1"}],
        "ports": [{"name": "http", "containerPort": PORT}],
        "resources": {"limits": {kubernetes.GPU: str(plan.gpus)}},
        "startupProbe": kubernetes.probe("/health", every_s=10, failures=LOAD_S // 10),
        "readinessProbe": kubernetes.probe("/health", every_s=5, failures=1),
        "livenessProbe": kubernetes.probe("/health", every_s=10, failures=3),
        "lifecycle": {"preStop": {"exec": {"command": ["sleep", str(kubernetes.DRAIN_S)]}}},
        "securityContext": kubernetes.SECURITY,
        "volumeMounts": [model, {"name": "shm", "mountPath": "/dev/shm"}],
    }
    kept = {"persistentVolumeClaim": {"claimName": claim, "readOnly": True}}
    shared = {"emptyDir": {"medium": "Memory", "sizeLimit": SHARED_MEMORY}}
    return {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": GRACE_S,
        "containers": [container],
        "volumes": [{"name": "model", **kept}, {"name": "shm", **shared}],
    }


def secret_of(plan: TextServerPlan) -> str:
    """Return the Secret that holds the token of clients."""
    return f"{plan.resource_name}-token"


def _cluster_head(plan: TextServerPlan) -> tuple[str, ...]:
    where = f" --namespace {plan.namespace}" if plan.namespace else ""
    return (
        f"kubectl create secret generic {secret_of(plan)} --from-literal=token=TOKEN{where}",
        "kubectl apply --filename THIS; clients send Authorization: Bearer TOKEN",
        f"{plan.storage} holds the model: config.json and its weights",
        f"Each pod has {plural(plan.gpus, 'card')}; what memory and CPUs it needs is not known",
        *figures(plan),
    )


def arguments(plan: TextServerPlan) -> list[str]:
    """Return the options of ``vllm serve``."""
    is_float8 = plan.precision == "float8"
    options = {
        "--served-model-name": plan.name,
        "--dtype": "bfloat16" if is_float8 else plan.precision,
        "--quantization": "fp8" if is_float8 else None,
        "--tensor-parallel-size": plan.gpus,
        "--gpu-memory-utilization": plan.utilization_ratio,
        "--max-model-len": plan.max_model_tokens,
        "--max-num-seqs": plan.max_requests,
        "--max-num-batched-tokens": plan.max_batched_tokens,
    }
    return [text for name, value in options.items() if value is not None
            for text in (name, str(value))]  # fmt: skip


def figures(plan: TextServerPlan) -> list[str]:
    """Say which figures are computed, from what, and what was not measured."""
    model = plan.model
    cards = f"{plural(plan.gpus, plan.gpu)}" if plan.gpus > 1 else f"one {plan.gpu}"
    windows = " Layers with a window need less of it: not counted." if model.has_windows else ""
    return [
        f"Computed from {model.source}, for {cards} of {format_bytes(plan.memory_bytes)}:",
        f"weights {format_bytes(plan.weights_bytes)} a card ({model.parameter_count:,} parameters, "
        f"{plan.precision}); a token's keys and values "
        f"{format_bytes(plan.token_bytes)} a card ({model.layers} layers, "
        f"{model.kv_heads} heads of {model.head_size}).{windows}",
        f"Left for keys and values: {_span(plan.cache_bytes)} a card, of "
        f"{100 * plan.utilization_ratio:g} % of it. What the work itself holds "
        f"({_span(plan.working_bytes)}) is assumed.",
        f"--max-num-seqs {plan.max_requests}: so many requests of {plan.max_model_tokens:,} tokens "
        "fit in the lowest of these.",
        "Not measured: no vLLM was started, and nothing is said of its speed. It tells at its "
        "start how many tokens it has room for.",
    ]


def _span(one: Interval) -> str:
    return f"{format_bytes(one.low)} to {format_bytes(one.high)}"


def _head(plan: TextServerPlan) -> tuple[str, ...]:
    url = f"http://{plan.host}:{plan.port}/v1/completions"
    is_open = plan.host in LOOPBACK
    asked = "" if is_open else f"; clients send Authorization: Bearer ${TOKEN}"
    return (f"docker compose up; then {url}, model {plan.name}{asked}", *figures(plan))
