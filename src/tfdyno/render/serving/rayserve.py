"""A serving plan as an application of Ray Serve: its code, and the file ``serve run`` takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.render.base.yaml_text import yaml_text

if TYPE_CHECKING:
    from tfdyno.core.deploy.serving_plan import ServingPlan

APPLICATION = Path(__file__).parents[1] / "tables" / "ray_serve_app.txt"
MODULE = "serve_app"
GRACE_S = 20.0
_BUSY_RATIO = 0.7
"""The share of the requests that a replica takes at a time beyond which another is started."""


def render_rayserve(plan: ServingPlan) -> dict[str, str]:
    """Render ``serve_app.py`` and ``config.yaml``; raises ``UsageError``."""
    if plan.kind != "savedmodel":
        raise UsageError(
            f"--render rayserve does not take a model of the kind {plan.kind}",
            why="its replicas run TensorFlow",
            remedy="export a SavedModel: tfdyno export MODEL --to savedmodel",
        )
    if plan.image:
        raise UsageError("--image is nothing that Ray Serve looks at",
                         remedy="the cluster has its own; leave it out")  # fmt: skip
    if "://" in plan.storage:
        raise UsageError(
            f"--storage {plan.storage} is no folder",
            why="replicas of Ray Serve read the model from one that their nodes see",
            remedy="name that, or leave it out where they see the new one",
        )
    head = ("In this folder: serve run config.yaml; on a cluster: serve deploy config.yaml",)
    return {
        f"{MODULE}.py": APPLICATION.read_text(encoding="utf-8"),
        "config.yaml": yaml_text(config(plan), head=head),
    }


def config(plan: ServingPlan) -> dict[str, Any]:
    """Return what ``ray.serve.schema.ServeDeploySchema`` describes."""
    return {
        "proxy_location": "HeadOnly",
        "http_options": {"host": "127.0.0.1", "port": plan.port},
        "applications": [
            {
                "name": plan.name,
                "route_prefix": "/",
                "import_path": f"{MODULE}:build",
                "args": {
                    "name": plan.name,
                    "version": plan.version,
                    "path": plan.storage or f"models/{plan.name}/{plan.version}",
                    "max_batch_size": plan.max_batch_size,
                    "max_delay_s": plan.max_delay_s,
                },
                "deployments": [deployment(plan)],
            }
        ],
    }


def deployment(plan: ServingPlan) -> dict[str, Any]:
    """Describe the replicas: each takes two batches of requests, one runs, one gathers."""
    ongoing = 2 * plan.max_batch_size
    scaling = {
        "autoscaling_config": {
            "min_replicas": plan.replicas_min,
            "max_replicas": plan.replicas_max,
            "target_ongoing_requests": max(1, round(_BUSY_RATIO * ongoing)),
        }
    }
    return {
        "name": "Model",
        **(scaling if plan.scales else {"num_replicas": plan.replicas_min}),
        "max_ongoing_requests": ongoing,
        "max_queued_requests": plan.max_queue,
        "graceful_shutdown_timeout_s": GRACE_S,
        "ray_actor_options": {"num_cpus": plan.cpus, "num_gpus": plan.gpus or None},
    }
