"""A child that runs a recipe: what must stand before TensorFlow starts, and where it ran."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.jobs.machine.knowledge import capability_of
from tfdyno.probe.base.host import this_host
from tfdyno.probe.machine.fingerprint import environment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.measure.measurement import Environment
    from tfdyno.core.measure.software import Software
    from tfdyno.core.recipe.recipe import Recipe

AUTO_CLUSTERING = "--tf_xla_auto_jit"
LARGEST_HASH_SEED = 4_294_967_295


def recipe_environment(
    recipe: Recipe, environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the variables that a child needs for ``recipe`` over those of ``environment``.

    What the recipe leaves open is left as the user has set it. Everything else of a recipe is set
    in the child itself (``runtime.recipe.apply``), which also checks what TensorFlow made of it.

    Args:
        recipe: The settings of the run.
        environment: The variables that the child inherits; those of this process when None.
    """
    given = os.environ if environment is None else environment
    variables = {"KERAS_BACKEND": "tensorflow"}
    if "TF_CPP_MIN_LOG_LEVEL" not in given:
        variables["TF_CPP_MIN_LOG_LEVEL"] = "1"  # its greetings hide what went wrong
    if recipe.visible_devices:
        # The numbers of nvidia-smi, which are not those of CUDA's own order.
        variables["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        variables["CUDA_VISIBLE_DEVICES"] = recipe.visible_devices
    if recipe.memory_growth:
        variables["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
    if recipe.precision in ("float32", "tf32"):
        # 0 forbids TF32 to NVIDIA's libraries whatever TensorFlow asks for.
        variables["NVIDIA_TF32_OVERRIDE"] = "0" if recipe.precision == "float32" else "1"
    if recipe.threads_intra:
        variables["TF_NUM_INTRAOP_THREADS"] = str(recipe.threads_intra)
        variables["OMP_NUM_THREADS"] = str(recipe.threads_intra)
    if recipe.threads_inter:
        variables["TF_NUM_INTEROP_THREADS"] = str(recipe.threads_inter)
    return variables | _of_determinism(recipe) | of_execution(recipe, given)


def environment_of(software: Software, variables: Mapping[str, str]) -> Environment:
    """Return where a child ran.

    Args:
        software: What it says of its own.
        variables: Those of ``recipe_environment``.
    """
    host = this_host()
    return environment(
        software,
        slug_of=lambda name: capability_of(name)[0],
        host=replace(host, environment={**host.environment, **variables}),
    )


def _of_determinism(recipe: Recipe) -> dict[str, str]:
    variables = {}
    if recipe.deterministic:
        variables["TF_DETERMINISTIC_OPS"] = "1"
    if recipe.seed is not None or recipe.deterministic:
        # The order of Python's sets and dictionaries of strings belongs to the seed.
        variables["PYTHONHASHSEED"] = str((recipe.seed or 0) % (LARGEST_HASH_SEED + 1))
    return variables


def of_execution(recipe: Recipe, given: Mapping[str, str]) -> dict[str, str]:
    """Return ``TF_XLA_FLAGS`` without clusters where the recipe runs operation by operation."""
    flags = given.get("TF_XLA_FLAGS", "").split()
    if recipe.execution != "graph" or not any(f.startswith(AUTO_CLUSTERING) for f in flags):
        return {}
    kept = [flag for flag in flags if not flag.startswith(AUTO_CLUSTERING)]
    return {"TF_XLA_FLAGS": " ".join(kept)}
