"""What this machine is made of and what is installed on it, without importing any of it."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

from gpu_truth.plan import FRAMEWORKS, WrongUseError

PACKAGES = {
    "tensorflow": ("tensorflow", "tensorflow-cpu", "tf-nightly", "tensorflow-gpu"),
    "jax": ("jax",),
    "keras": ("keras", "keras-nightly"),
}

UNWANTED = ("TF_XLA_FLAGS", "NVIDIA_TF32_OVERRIDE")
"""Variables that would make a step another one than its row says."""


def installed_framework() -> str | None:
    """TensorFlow if it is installed, else JAX, else nothing."""
    return next((name for name in FRAMEWORKS if importlib.util.find_spec(name)), None)


def require(backend: str) -> None:
    """Make sure that what the children import is installed.

    Raises:
        WrongUseError: A package is missing; it is named.
    """
    missing = [name for name in (backend, "keras", "numpy") if not importlib.util.find_spec(name)]
    if missing:
        words = " and ".join(missing)
        raise WrongUseError(
            f"{words} not installed for this Python: pip install {' '.join(missing)}, "
            "or name another Python with PYTHON=/path/to/python"
        )
    keras = versions(backend)["keras_version"]
    if keras.startswith("2."):
        raise WrongUseError(f"Keras {keras} is too old: the builders are of Keras 3")


def versions(backend: str) -> dict[str, str]:
    """Versions of the framework and of Keras, as their packages say."""
    return {"framework_version": _version(backend), "keras_version": _version("keras")}


def _version(name: str) -> str:
    for package in PACKAGES[name]:
        with contextlib.suppress(metadata.PackageNotFoundError):
            return metadata.version(package)
    return "unknown"


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cpu_name() -> str:
    """The processor's name; its architecture where the system does not tell."""
    with contextlib.suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
        if found:
            return found[1].strip()
    return platform.processor() or platform.machine() or "unknown"


def facts() -> dict[str, object]:
    """Fields of a row that the machine gives."""
    ptxas = ptxas_version()
    return {
        "host_cpu": cpu_name(),
        "xla_flags": os.environ.get("XLA_FLAGS", "").strip(),
        **({"ptxas": ptxas} if ptxas else {}),
    }


def ptxas_version() -> str | None:
    """The release of the ``ptxas`` that XLA would find: NVIDIA's package first, then the path."""
    spec = importlib.util.find_spec("nvidia")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    packaged = (str(path) for folder in folders for path in Path(folder).glob("*/bin/ptxas"))
    program = next(packaged, None) or shutil.which("ptxas")
    if program is None:
        return None
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=20.0, check=False
        )
        found = re.search(r"\bV(\d+\.\d+\.\d+)", done.stdout)
        return found[1] if found else None
    return None


def environment(backend: str, uuid: str | None) -> dict[str, str]:
    """The environment of children: one card, or none, and memory as it is needed."""
    kept = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    card = {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": "-1"}
    if uuid is not None:
        card = {"CUDA_VISIBLE_DEVICES": uuid}
    return {
        **kept,
        "KERAS_BACKEND": backend,
        "TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"),
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        **card,
    }
