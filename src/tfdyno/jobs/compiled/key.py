"""What a compiled program depends on that its compiler's own key leaves out."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.codec import to_builtins, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.choose.workload import Workload
    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.probe.python.compilers import Compiler

BEGINNINGS = ("XLA_", "TF_", "CUDA_", "CUDNN_", "CUBLAS_", "NVIDIA_", "LD_", "OMP_", "MKL_", "HIP_")
"""How variables begin that reach a compiler, or the libraries that it tries out."""
HARMLESS = (
    *("TF_CONFIG", "TF_CPP_", "TF_FORCE_GPU_ALLOW_GROWTH", "CUDA_VISIBLE_DEVICES"),
    *("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_REQUIRE_"),
)
"""Beginnings of those that do not: who takes part, what is printed, which cards there are."""
SETTINGS = ("deterministic", "precision", "threads_intra")
"""The settings of a recipe that TensorFlow is told by a call, not by a variable."""
WORD = b"XLA_FLAGS"
KEY = 16


def software_key(
    compiler: Compiler,
    machine: Mapping[str, str],
    variables: Mapping[str, str],
    recipe: Recipe,
    source: Path | None,
) -> str:
    """Name of the folder whose programs fit: another TensorFlow, card or flag has another.

    TensorFlow looks its programs up by the graph alone: neither its version nor ``XLA_FLAGS`` is
    part of that, so all of it is in this name.

    Args:
        compiler: That makes the programs.
        machine: What they are made for.
        variables: All of the child's environment, without the flags that keep programs.
        recipe: Of the run.
        source: The user's own file, which counts where it speaks of ``XLA_FLAGS``.
    """
    facts = {
        "library": [compiler.size_bytes, compiler.changed_at_ns, compiler.versions],
        "machine": dict(machine),
        "variables": {name: value for name, value in sorted(variables.items()) if matters(name)},
        "recipe": [str(getattr(recipe, name)) for name in SETTINGS],
        "source": _with_flags(source),
    }
    return _digest(to_json(facts))


def matters(name: str) -> bool:
    """Return whether a variable may change what is compiled."""
    return name.startswith(BEGINNINGS) and not name.startswith(HARMLESS)


def step_key(workload: Workload, recipe: Recipe, data: str, doing: str) -> str:
    """Name of a step whose first run was timed: the same workload under the same recipe."""
    return _digest(to_json([to_builtins(workload), to_builtins(recipe), data, doing]))


def source_of(workload: Workload) -> Path | None:
    """Return the user's file; None where the workload is none."""
    path = Path(workload.reference.partition(":")[0])
    return path if path.suffix == ".py" and path.is_file() else None


def _with_flags(source: Path | None) -> str:
    if source is None:
        return ""
    text = source.read_bytes()
    return _digest(text) if WORD in text else ""


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:KEY]
