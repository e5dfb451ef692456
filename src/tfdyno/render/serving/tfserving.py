"""A serving plan as the files of TensorFlow Serving: models, batching, monitoring, compose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.render.base.text_proto import text_proto
from tfdyno.render.base.yaml_text import yaml_text
from tfdyno.render.serving.images import image_of

if TYPE_CHECKING:
    from tfdyno.core.deploy.serving_plan import ServingPlan

REST, GRPC = 8501, 8500
"""Ports in the container: what its entry point sets."""
METRICS = "/monitoring/prometheus/metrics"
CONFIG, MODELS = "/config", "/models"
GRACE_S = 30
_MICROS = 1e6
_THREADS_PER_ROW = 2
"""Client threads for each row of a batch that TensorFlow Serving wants: its
``session_bundle_config.proto``."""


def render_tfserving(plan: ServingPlan) -> dict[str, str]:
    """Return files by their path beside ``models``; raises ``UsageError``."""
    return {"compose.yaml": compose(plan), **tfserving_config(plan)}


def tfserving_config(plan: ServingPlan) -> dict[str, str]:
    """Return the three files that the server reads, by their path."""
    return {
        "config/models.config": models_config(plan),
        "config/batching.config": batching_config(plan),
        "config/monitoring.config": text_proto(
            {"prometheus_config": {"enable": True, "path": METRICS}}
        ),
    }


def models_config(plan: ServingPlan) -> str:
    """Return a ``ModelServerConfig``: the newest version that lies there is served."""
    model = {
        "name": plan.name,
        "base_path": f"{MODELS}/{plan.name}",
        "model_platform": "tensorflow",
        "model_version_policy": {"latest": {"num_versions": 1}},
    }
    return text_proto({"model_config_list": {"config": model}})


def batching_config(plan: ServingPlan) -> str:
    """Write ``BatchingParameters``: the queue holds as many requests as the plan lets wait."""
    batches = max(1, plan.max_queue // plan.max_batch_size)
    settings = {
        "max_batch_size": plan.max_batch_size,
        "batch_timeout_micros": round(plan.max_delay_s * _MICROS),
        "max_enqueued_batches": batches,
        "num_batch_threads": batch_threads(plan),
    }
    return text_proto({name: {"value": value} for name, value in settings.items()})


def batch_threads(plan: ServingPlan) -> int:
    """Count batches at a time: one per CPU; two on a GPU, which copies one while it computes."""
    return 2 if plan.gpus else plan.cpus


def arguments(plan: ServingPlan) -> list[str]:
    """Return the server's arguments, behind those of the container's own entry point."""
    return [
        f"--model_config_file={CONFIG}/models.config",
        f"--monitoring_config_file={CONFIG}/monitoring.config",
        *batching_arguments(plan, CONFIG),
    ]


def batching_arguments(plan: ServingPlan, folder: str) -> list[str]:
    """Return how the server batches, with the file that lies in a folder."""
    return [
        "--enable_batching=true",
        f"--batching_parameters_file={folder}/batching.config",
        f"--rest_api_num_threads={_THREADS_PER_ROW * plan.max_batch_size}",
        f"--rest_api_timeout_in_ms={round(plan.deadline_s * 1000)}",
    ]


def compose(plan: ServingPlan) -> str:
    """Return the server on this machine, on loopback."""
    service = {
        "image": image_of(plan),
        "command": arguments(plan),
        "ports": [f"127.0.0.1:{plan.port}:{REST}"],
        "volumes": [f"./models:{MODELS}:ro", f"./config:{CONFIG}:ro"],
        "restart": "unless-stopped",
        "stop_grace_period": f"{GRACE_S}s",
        "healthcheck": {
            "test": ["CMD", "bash", "-c", _status(plan)],
            "interval": "5s",
            "timeout": "3s",
            "retries": 3,
            "start_period": "60s",
        },
        **resources(plan),
    }
    url = f"http://127.0.0.1:{plan.port}/v1/models/{plan.name}"
    head = (f"docker compose up; then {url}",)
    return yaml_text({"name": plan.resource_name, "services": {"tfserving": service}}, head=head)


def resources(plan: ServingPlan) -> dict[str, Any]:
    """Return the resources of a service in a compose file."""
    limits = {"cpus": str(plan.cpus), "memory": f"{plan.memory_bytes >> 20}m"}
    card = {"driver": "nvidia", "count": plan.gpus, "capabilities": ["gpu"]}
    cards = {"reservations": {"devices": [card]}} if plan.gpus else {}
    return {"deploy": {"resources": {"limits": limits, **cards}}}


def _status(plan: ServingPlan) -> str:
    """Ask for the model's state with what the image has: it brings no curl."""
    request = f"GET /v1/models/{plan.name} HTTP/1.0\\r\\n\\r\\n"
    opened = f"exec 3<>/dev/tcp/127.0.0.1/{REST}"
    return f"{opened} && printf '{request}' >&3 && grep -q AVAILABLE <&3"
