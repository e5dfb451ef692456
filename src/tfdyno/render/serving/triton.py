"""A serving plan as a model repository of NVIDIA Triton, with the compose file that starts it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.render.base.text_proto import Word, text_proto
from tfdyno.render.base.yaml_text import yaml_text
from tfdyno.render.serving.images import image_of, last_release
from tfdyno.render.serving.tfserving import resources

if TYPE_CHECKING:
    from tfdyno.core.deploy.serving_plan import ServingPlan

HTTP, GRPC, METRICS = 8000, 8001, 8002
"""Ports in the container: Triton's own."""
REPOSITORY = "/models"
GRACE_S = 30
PLATFORMS = {
    "savedmodel": ("tensorflow_savedmodel", "model.savedmodel"),
    "onnx": ("onnxruntime_onnx", "model.onnx"),
    "tensorrt": ("tensorrt_plan", "model.plan"),
}
"""Platform, and what the model is called in the folder of its version."""
_MICROS = 1e6


def render_triton(plan: ServingPlan) -> dict[str, str]:
    """Return files by their path beside the model's own; raises ``UsageError``."""
    return {"compose.yaml": compose(plan), f"models/{plan.name}/config.pbtxt": config(plan)}


def model_file(plan: ServingPlan) -> str:
    """Return where the model lies in the rendered folder."""
    return f"models/{plan.name}/{plan.version}/{PLATFORMS[plan.kind][1]}"


def notes(plan: ServingPlan) -> tuple[str, ...]:
    """Return what the user has to know of this server with this kind of model."""
    last = last_release(plan)
    if not last:
        return ()
    return (
        f"Triton {last} is the last release with the TensorFlow backend (TensorFlow 2.17): a "
        "SavedModel with newer operations does not load there; export to ONNX for later releases",
    )


def config(plan: ServingPlan) -> str:
    """Write a ``ModelConfig``; inputs and outputs are left to Triton, which reads the model."""
    head = ("Inputs and outputs are read from the model (Triton completes its configuration).",)
    instance = {"kind": Word("KIND_GPU" if plan.gpus else "KIND_CPU"), "count": instances(plan)}
    return text_proto(
        {
            "name": plan.name,
            "platform": PLATFORMS[plan.kind][0],
            "max_batch_size": plan.max_batch_size if plan.max_batch_size > 1 else 0,
            "version_policy": {"latest": {"num_versions": 1}},
            "instance_group": instance,
            "dynamic_batching": _batching(plan) if plan.max_batch_size > 1 else None,
            "parameters": _parameters(plan),
        },
        head=head,
    )


def instances(plan: ServingPlan) -> int:
    """Count copies of the model: two on a GPU, where one copies while the other computes."""
    return 2 if plan.gpus else 1


def arguments(plan: ServingPlan, repository: str = REPOSITORY) -> list[str]:
    """Return the server's command."""
    return [
        "tritonserver",
        f"--model-repository={repository}",
        "--model-control-mode=poll",
        "--repository-poll-secs=15",
        f"--exit-timeout-secs={GRACE_S}",
        "--strict-readiness=true",
        f"--model-load-thread-count={plan.cpus}",
    ]


def compose(plan: ServingPlan) -> str:
    """Return the server on this machine, on loopback."""
    service = {
        "image": image_of(plan),
        "command": arguments(plan),
        "ports": [f"127.0.0.1:{plan.port}:{HTTP}"],
        "volumes": [f"./models:{REPOSITORY}:ro"],
        "shm_size": "256m",
        "restart": "unless-stopped",
        "stop_grace_period": f"{GRACE_S + 5}s",
        "healthcheck": {
            "test": ["CMD", "curl", "-sf", f"http://127.0.0.1:{HTTP}/v2/health/ready"],
            "interval": "5s",
            "timeout": "3s",
            "retries": 3,
            "start_period": "120s",
        },
        **resources(plan),
    }
    url = f"http://127.0.0.1:{plan.port}/v2/models/{plan.name}/infer"
    head = (f"docker compose up; then {url}", *notes(plan))
    return yaml_text({"name": plan.resource_name, "services": {"triton": service}}, head=head)


def _batching(plan: ServingPlan) -> dict[str, object]:
    """Return batches as large as may be, and a queue that refuses what would wait too long.

    A preferred size ends the wait for a fuller batch: it is of use where the model is tuned for
    it, as a TensorRT engine is.
    """
    return {
        "preferred_batch_size": plan.max_batch_size if plan.kind == "tensorrt" else None,
        "max_queue_delay_microseconds": round(plan.max_delay_s * _MICROS),
        "default_queue_policy": {
            "timeout_action": Word("REJECT"),
            "default_timeout_microseconds": round(plan.deadline_s * _MICROS),
            "allow_timeout_override": True,
            "max_queue_size": plan.max_queue,
        },
    }


def _parameters(plan: ServingPlan) -> dict[str, object] | None:
    """ONNX Runtime would take a thread for each CPU of the machine, whatever the limit."""
    if plan.kind != "onnx" or plan.gpus:
        return None
    return {"key": "intra_op_thread_count", "value": {"string_value": str(plan.cpus)}}
