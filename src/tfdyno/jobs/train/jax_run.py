"""A training on Keras' JAX backend: what stands before JAX starts, and which scripts can."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.cluster.cluster import NO_CARD
from tfdyno.rules.tensorflow_only import tensorflow_uses

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.choose.workload import Workload
    from tfdyno.core.train.jax_plan import JaxPlan

HOST_DEVICES = "--xla_force_host_platform_device_count"
_GIVEN = re.compile(rf"{HOST_DEVICES}=(\d+)")
_WORDS = {
    "loop": ("trains by a loop of its own", "leave the training to model.fit"),
    "function": ("compiles by tf.function", "leave it out: JAX compiles the step by itself"),
    "strategy": ("makes a tf.distribute strategy", "leave it out: --mesh stands for it"),
    "operation": ("calls TensorFlow's own operation in a layer", "use keras.ops in its place"),
}


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


def check_script(workload: Workload) -> None:
    """Refuse a file that only TensorFlow can train; raises ``UsageError`` with the line.

    Args:
        workload: Whose file is read; other files that it imports are not.
    """
    path = Path(workload.reference.partition(":")[0])
    if path.suffix != ".py" or not path.is_file():
        return
    uses = tensorflow_uses(path.read_text(errors="replace"))
    if uses:
        first = min(uses, key=lambda use: (list(_WORDS).index(use.kind), use.line))
        said, remedy = _WORDS[first.kind]
        raise UsageError(
            f"{path} cannot train on the JAX backend",
            why=f"line {first.line} {said}: {first.name}",
            remedy=f"{remedy}, or train without --backend jax",
        )
