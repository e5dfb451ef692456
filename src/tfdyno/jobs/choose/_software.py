"""Which release of TensorFlow or JAX an answer is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.catalog.generations import newest, software, software_from
from tfdyno.probe.python.versions import version

if TYPE_CHECKING:
    from tfdyno.core.choose.generation import Software
    from tfdyno.core.choose.workload import Workload

TENSORFLOW = ("tensorflow", "tensorflow-cpu")


def software_for(workload: Workload, python: str) -> Software:
    """Return what the workload asks for, else what is installed where it runs, else the newest.

    Raises:
        UsageError: What is asked for is no release.
    """
    asked = software_from(workload.software)
    if asked is not None:
        return asked
    found = version(*TENSORFLOW, python=python) or _without_metadata(python)
    return software("tensorflow", found, "installed") if found else newest()


def _without_metadata(python: str) -> str:
    """Find a TensorFlow that only ``PYTHONPATH`` names; empty: none, or it does not tell."""
    from tfdyno.probe.base.distributions import module_version
    from tfdyno.probe.base.host import this_host
    from tfdyno.probe.base.python import interpreter

    host = this_host(python)
    return module_version(host, interpreter(host).tensorflow)
