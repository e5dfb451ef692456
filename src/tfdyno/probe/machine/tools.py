"""ptxas, libdevice and the toolkit: what XLA needs besides libraries."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

from tfdyno.probe.base.attempt import Part, found, not_run
from tfdyno.probe.base.distributions import join
from tfdyno.probe.base.folders import toolkits
from tfdyno.probe.base.python import interpreter

if TYPE_CHECKING:
    from tfdyno.core.doctor.machine_facts import MachineFacts
    from tfdyno.probe.base.host import Host

DATA_FLAG = re.compile(r"--xla_gpu_cuda_data_dir=(\S+)")


def tools(host: Host, facts: MachineFacts) -> Part:
    """Find ptxas and libdevice as XLA does, and the version of the toolkit."""
    cuda = toolkit_version(host)
    build = facts.python.build
    if host.system != "linux":
        return not_run("XLA compiles for a GPU on Linux only", cuda=cuda)
    if build and not build.is_cuda_build:
        return not_run("this TensorFlow is built without CUDA", cuda=cuda)
    roots = search_roots(host)
    on_path = [f"{one}/ptxas" for one in host.environment.get("PATH", "").split(":") if one]
    files = [f"{root}/bin/ptxas" for root in roots] + on_path
    devices = [f"{root}/nvvm/libdevice/libdevice.10.bc" for root in roots]
    return found(
        ptxas=next(filter(host.exists, files), ""),
        libdevice=next(filter(host.exists, devices), ""),
        tools_searched=roots,
        cuda=cuda,
    )


def search_roots(host: Host) -> tuple[str, ...]:
    """List folders in XLA's order: its flag, the wheel of nvcc, toolkits; ``.`` is the folder.

    Source:
        The list that XLA prints with "libdevice is required by this HLO module but was not found".
    """
    flag = DATA_FLAG.findall(host.environment.get("XLA_FLAGS", ""))
    wheels = [join(host, one, "nvidia", "cuda_nvcc") for one in interpreter(host).folders]
    found_roots = [root for root in toolkits(host) if root not in flag]
    return tuple(dict.fromkeys([*flag, "./cuda_sdk_lib", *wheels, *found_roots]))


def toolkit_version(host: Host) -> str:
    """Return version of the first installed toolkit that tells one; empty if there is none."""
    roots = toolkits(host)
    usual = [one for one in roots if one.endswith("/cuda")]
    for root in [*usual, *(one for one in roots if one not in usual)]:
        version = _told_version(host, root)
        if version:
            return version
    return ""


def _told_version(host: Host, root: str) -> str:
    told = host.text(join(host, root, "version.json"))
    if told:
        import json

        with contextlib.suppress(ValueError, KeyError, TypeError):
            return str(json.loads(told)["cuda"]["version"])
    text = host.text(join(host, root, "version.txt")) or host.real(root)
    line = re.search(r"CUDA Version (\d[\d.]*)", text) or re.search(r"cuda-(\d[\d.]*)$", text)
    return line[1] if line else ""
