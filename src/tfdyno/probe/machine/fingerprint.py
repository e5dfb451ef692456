"""Where a measurement was made: cards, driver, software, system, processor."""

from __future__ import annotations

import math
import platform
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from tfdyno.core.measure.measurement import Card, Environment
from tfdyno.probe.base import driver, processors
from tfdyno.probe.base.host import KERNELS, Host, this_host
from tfdyno.probe.cards import cards
from tfdyno.probe.machine import system
from tfdyno.probe.machine.platforms import macos, windows
from tfdyno.probe.machine.revision import revision

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.measure.software import DeviceKind, Software

IMAGE_VARIABLE = "TFDYNO_CONTAINER_IMAGE"
"""Set by the command that ``bench --container`` prints: a container does not know its image."""
SOFTWARE = ("tensorflow", "keras", "jax", "python", "cuda", "cudnn")


def environment(
    software: Software,
    *,
    slug_of: Callable[[str], str] = lambda _name: "",
    host: Host | None = None,
) -> Environment:
    """Return the fingerprint of this machine and of the software that a child found; never raises.

    Args:
        software: Its ``devices`` stand in for NVML's names where that tells nothing; without
            ``device``, a name with GPU in it among them tells.
        slug_of: Row of the catalogue for the name of a card; empty where it is not in it.
        host: The machine; this one when None.
    """
    host = host or this_host()
    device = device_of(software)
    with cards.opened() as nvml:
        visible = host.environment.get("CUDA_VISIBLE_DEVICES")
        handles = cards.handles(nvml, visible) if nvml and device == "gpu" else ()
        found = tuple(cards.card(nvml, handle, slug_of) for _, handle in handles)
        version = cards.text(cards.ask(nvml, "nvmlSystemGetDriverVersion")) if found else ""
    told = {name: str(software.get(name) or "") for name in SOFTWARE}
    if device == "gpu":
        told["driver"] = version or driver.module_version(host)
        named = map(str, software.get("devices") or ())
        found = found or tuple(Card(name=name, slug=slug_of(name)) for name in named)
    return Environment(
        device=device,
        cards=found,
        tfdyno=revision(),
        system=system_name(host),
        host=platform.node(),
        container=container(host),
        container_image=container_image(host),
        cpu=processors.name(host),
        cpu_count=math.ceil(processors.usable(host)),
        memory_bytes=memory_bytes(host),
        **told,
    )


def device_of(software: Software) -> DeviceKind:
    """Return what the child computed on."""
    named = software.get("device")
    if named in ("cpu", "gpu"):
        return "gpu" if named == "gpu" else "cpu"
    devices = map(str, software.get("devices") or ())
    return "gpu" if any("GPU" in one.upper() for one in devices) else "cpu"


def system_name(host: Host) -> str:
    """Return ``Linux 6.1 (Debian GNU/Linux 12)``: kernel with two numbers, and the release."""
    kernel = re.match(r"\d+(?:\.\d+)?", host.version)
    name = " ".join(filter(None, [KERNELS.get(host.system, host.system), kernel and kernel[0]]))
    if host.system == "linux":
        release = system.release(host.text("/etc/os-release"))
    else:
        readers = {"windows": windows, "macos": macos}
        release = readers[host.system](host)["release"] if host.system in readers else ""
    return f"{name} ({release})" if release else name


def container(host: Host) -> str:
    """Name of the container engine; empty outside of one."""
    name = system.container(host) if host.system == "linux" else "none"
    return "" if name == "none" else name


def container_image(host: Host) -> str:
    """Return the container's image, where anything tells it; empty mostly."""
    given = host.environment
    podman = re.search(r'^image="([^"]*)"$', host.text("/run/.containerenv"), re.MULTILINE)
    apptainer = given.get("APPTAINER_CONTAINER") or given.get("SINGULARITY_CONTAINER", "")
    told = given.get(IMAGE_VARIABLE) or (podman[1] if podman else "")
    return told or PurePosixPath(apptainer).name


def memory_bytes(host: Host) -> int:
    """Return memory of the machine, or of its control group where that is less; 0 where unknown."""
    if host.system == "linux":
        return system.memory_bytes(host)
    import psutil

    return int(psutil.virtual_memory().total)
