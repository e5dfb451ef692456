"""A launch plan in the words of Ray Train, for the engine that runs it.

The names are those of ``ScalingConfig``, ``RunConfig`` and ``FailureConfig`` of Ray 2.60.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.errors import UsageError
from tfdyno.core.launch_plan import node_words
from tfdyno.engines.yaml_text import yaml_text

if TYPE_CHECKING:
    from tfdyno.core.launch_plan import LaunchPlan

KNOWN = {"address": "of a running cluster, host:6379 or ray://…"}
"""Settings of the engine alone."""


def render_ray(plan: LaunchPlan) -> str:
    """The plan as YAML; raises ``UsageError`` where Ray cannot do what it asks."""
    return yaml_text(ray_plan(plan), head=(f"{plan.name}: {plan.nodes} workers of Ray Train",))


def ray_plan(plan: LaunchPlan) -> dict[str, Any]:
    """What Ray Train is asked for, and what each worker trains."""
    if plan.time_limit_s:
        what = "--time-limit is no setting of Ray"
        raise UsageError(what, remedy="set it where the cluster runs")
    resources = {
        "GPU": plan.gpus_per_node or None,
        "CPU": plan.cpus or None,
        "memory": plan.memory_bytes or None,
    }
    asked = {name: value for name, value in resources.items() if value}
    return {
        "address": plan.option("address") or None,
        "scaling_config": {
            "num_workers": plan.nodes,
            "use_gpu": plan.gpus_per_node > 0,
            "resources_per_worker": asked or None,
        },
        "run_config": {
            "name": plan.name,
            "storage_path": plan.output,
            "failure_config": {"max_failures": plan.restarts},
        },
        "runtime_env": {
            "working_dir": plan.folder or None,
            "env_vars": dict(plan.environment) or None,
        },
        "train": list(node_words(plan)[3:]),
    }
