"""One process of a training on Keras' JAX backend: what stands before JAX starts."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from tfdyno.core.cluster.cluster import NO_CARD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.train.jax_plan import JaxPlan

HOST_DEVICES = "--xla_force_host_platform_device_count"
_GIVEN = re.compile(rf"{HOST_DEVICES}=(\d+)")


def jax_environment(plan: JaxPlan, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return variables to set over those of ``environment`` for a child that trains on JAX.

    Args:
        plan: What is asked.
        environment: The variables that the child inherits; those of this process when None.
    """
    given = os.environ if environment is None else environment
    variables = {"KERAS_BACKEND": "jax"}
    if "TF_CPP_MIN_LOG_LEVEL" not in given:
        variables["TF_CPP_MIN_LOG_LEVEL"] = "1"  # its greetings hide what went wrong
    if given.get("CUDA_VISIBLE_DEVICES") == NO_CARD and not given.get("JAX_PLATFORMS"):
        variables["JAX_PLATFORMS"] = "cpu"
    if plan.host_devices:
        kept = [one for one in given.get("XLA_FLAGS", "").split() if not _GIVEN.fullmatch(one)]
        variables["XLA_FLAGS"] = " ".join([*kept, f"{HOST_DEVICES}={plan.host_devices}"])
    return variables


def host_devices(plan: JaxPlan, environment: Mapping[str, str]) -> int:
    """Return devices that the CPU of each process stands for."""
    found = _GIVEN.search(environment.get("XLA_FLAGS", ""))
    return plan.host_devices or (int(found[1]) if found else 1)
