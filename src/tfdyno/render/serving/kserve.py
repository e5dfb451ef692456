"""A serving plan as an InferenceService of KServe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.render.base.yaml_text import yaml_text
from tfdyno.render.serving import tfserving, triton
from tfdyno.render.serving.images import image_of
from tfdyno.render.serving.kubernetes import resources

if TYPE_CHECKING:
    from tfdyno.core.deploy.serving_plan import ServingPlan

STORE = "/mnt/models"
"""Where KServe puts what it fetches."""
RUNTIMES = {"tfserving": "kserve-tensorflow-serving", "triton": "kserve-tritonserver"}
"""KServe's own (``config/runtimes`` of its repository)."""
FORMATS = {"savedmodel": "tensorflow", "onnx": "onnx", "tensorrt": "tensorrt"}


def render_kserve(plan: ServingPlan) -> dict[str, str]:
    """Return the manifest by its file's path, and what has to lie beside the model; raises."""
    if not plan.storage:
        raise UsageError(
            "KServe fetches the model itself",
            remedy="say where it lies: --storage s3://bucket/folder, gs://…, https://… or "
            "pvc://CLAIM/folder",
        )
    files = {"kserve.yaml": yaml_text(inference_service(plan), head=_head(plan))}
    if plan.server == "triton":
        return {**files, f"models/{plan.name}/config.pbtxt": triton.config(plan)}
    return {**files, "models/batching.config": tfserving.batching_config(plan)}


def inference_service(plan: ServingPlan) -> dict[str, Any]:
    """Return an ``InferenceService`` of ``serving.kserve.io/v1beta1``."""
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": plan.resource_name, "namespace": plan.namespace or None},
        "spec": {"predictor": _predictor(plan)},
    }


def _predictor(plan: ServingPlan) -> dict[str, Any]:
    is_tfserving = plan.server == "tfserving"
    more = tfserving.batching_arguments(plan, STORE) if is_tfserving else None
    model = {
        "modelFormat": {"name": FORMATS[plan.kind]},
        "runtime": RUNTIMES[plan.server],
        "protocolVersion": "v1" if is_tfserving else "v2",
        "storageUri": plan.storage,
        "image": image_of(plan),
        "args": more,
        "resources": resources(plan),
    }
    return {
        "minReplicas": plan.replicas_min,
        "maxReplicas": plan.replicas_max,
        **_scaling(plan),
        "timeout": max(1, round(plan.deadline_s)),
        "model": model,
    }


def _scaling(plan: ServingPlan) -> dict[str, Any]:
    """Scale by the rate that one replica answers in time where known, else by what is in flight.

    Both are measured by Knative, which also drains a replica that goes; it refuses a ``lifecycle``.
    """
    if not plan.scales:
        return {}
    if plan.target_requests_per_s:
        return {"scaleMetric": "rps", "scaleTarget": max(1, int(plan.target_requests_per_s))}
    return {"scaleMetric": "concurrency", "scaleTarget": plan.max_batch_size}


def _head(plan: ServingPlan) -> tuple[str, ...]:
    if plan.server == "tfserving":
        inside = f"{plan.version}/saved_model.pb and batching.config"
    else:
        model = triton.PLATFORMS[plan.kind][1]
        inside = f"{plan.name}/config.pbtxt and {plan.name}/{plan.version}/{model}"
    lines = ["kubectl apply --filename THIS", f"{plan.storage} holds {inside}"]
    if plan.scales:
        lines.append("Replicas: as Knative measures; KServe's standard mode scales by cpu instead")
    return (*lines, *(triton.notes(plan) if plan.server == "triton" else ()))
