"""Which release of TensorFlow or JAX an answer is for."""

from __future__ import annotations

import subprocess
import sys
from functools import lru_cache
from importlib import metadata
from typing import TYPE_CHECKING

from tfdyno.catalog.generations import newest, software, software_from

if TYPE_CHECKING:
    from tfdyno.core.choose.generation import Software
    from tfdyno.core.choose.workload import Workload

TENSORFLOW = ("tensorflow", "tensorflow-cpu")
LOOK_S = 60.0


def software_for(workload: Workload, python: str) -> Software:
    """Return what the workload asks for, else what is installed where it runs, else the newest.

    Raises:
        UsageError: What is asked for is no release.
    """
    asked = software_from(workload.software)
    if asked is not None:
        return asked
    version = _installed(python) or _without_metadata(python)
    return software("tensorflow", version, "installed") if version else newest()


@lru_cache(maxsize=8)
def _installed(python: str) -> str:
    """Return the version of the TensorFlow that an interpreter finds; empty: none."""
    if python == sys.executable:
        for name in TENSORFLOW:
            try:
                return metadata.version(name)
            except metadata.PackageNotFoundError:
                continue
        return ""
    look = (
        "from importlib import metadata\n"
        f"for name in {TENSORFLOW!r}:\n"
        "    try:\n        print(metadata.version(name)); break\n"
        "    except metadata.PackageNotFoundError:\n        pass\n"
    )
    try:
        done = subprocess.run(
            [python, "-c", look], capture_output=True, text=True, timeout=LOOK_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):  # the trace in this interpreter will say why
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _without_metadata(python: str) -> str:
    """Find a TensorFlow that only ``PYTHONPATH`` names; empty: none, or it does not tell."""
    from tfdyno.probe.base.distributions import module_version
    from tfdyno.probe.base.host import this_host
    from tfdyno.probe.base.python import interpreter

    host = this_host(python)
    return module_version(host, interpreter(host).tensorflow)
