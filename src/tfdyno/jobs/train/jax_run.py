"""A training on Keras' JAX backend: what stands before JAX starts, and which scripts can."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.cluster.cluster import NO_CARD
from tfdyno.rules.jax.project import cause_of, first_stop

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.choose.workload import Workload
    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.core.train.jax_plan import JaxPlan

DETERMINISTIC = "--xla_gpu_deterministic_ops=true"
HOST_DEVICES = "--xla_force_host_platform_device_count"
_GIVEN = re.compile(rf"{HOST_DEVICES}=(\d+)")


def jax_environment(
    plan: JaxPlan, recipe: Recipe, environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return variables to set over those of ``environment`` for a child that trains on JAX.

    Args:
        plan: What is asked.
        recipe: Its memory of the cards, and whether operations are deterministic.
        environment: The variables that the child inherits; those of this process when None.
    """
    given = os.environ if environment is None else environment
    variables = {"KERAS_BACKEND": "jax"}
    if "TF_CPP_MIN_LOG_LEVEL" not in given:
        variables["TF_CPP_MIN_LOG_LEVEL"] = "1"  # its greetings hide what went wrong
    if given.get("CUDA_VISIBLE_DEVICES") == NO_CARD and not given.get("JAX_PLATFORMS"):
        variables["JAX_PLATFORMS"] = "cpu"
    if recipe.memory_growth:
        variables["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    if recipe.memory_fraction:
        variables["XLA_PYTHON_CLIENT_MEM_FRACTION"] = str(recipe.memory_fraction)
    flags = given.get("XLA_FLAGS", "").split()
    if plan.host_devices:
        flags = [one for one in flags if not _GIVEN.fullmatch(one)]
        flags.append(f"{HOST_DEVICES}={plan.host_devices}")
    if recipe.deterministic:
        flags.append(DETERMINISTIC)
    if plan.host_devices or recipe.deterministic:
        variables["XLA_FLAGS"] = " ".join(flags)
    return variables


def host_devices(plan: JaxPlan, environment: Mapping[str, str]) -> int:
    """Return devices that the CPU of each process stands for."""
    found = _GIVEN.search(environment.get("XLA_FLAGS", ""))
    return plan.host_devices or (int(found[1]) if found else 1)


def check_script(workload: Workload) -> None:
    """Refuse a file that only TensorFlow can train; raises ``UsageError`` with the line.

    Args:
        workload: Whose file is read; of what it imports from beside it, only what that is.
    """
    path = Path(workload.reference.partition(":")[0])
    first = first_stop(path)
    if first is None:
        return
    cause = cause_of(first.cause)
    step = cause.fix[0].text
    told = step.en.rstrip(".") if step else ""
    remedy = f"write instead: {first.instead}" if first.instead else told[:1].lower() + told[1:]
    raise UsageError(
        f"{path} cannot train on the JAX backend",
        why=f"line {first.line}, {first.name}: {cause.why.en.rstrip('.')}",
        remedy=f"{remedy}; every line: tfdyno doctor --code {path} --to jax",
    )
