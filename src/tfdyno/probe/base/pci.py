"""NVIDIA hardware that the machine shows, with or without a driver."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tfdyno.probe.base.attempt import Part, found, not_run

if TYPE_CHECKING:
    from tfdyno.core.doctor.machine_facts import MachineFacts
    from tfdyno.probe.base.host import Host

DEVICES = "/sys/bus/pci/devices"
NVIDIA = "0x10de"
DISPLAY = "0x03"
"""Class of display controllers; a card also shows its sound device."""
NODE = re.compile(r"nvidia\d*$|nvidia(ctl|-uvm|-uvm-tools|-modeset|-caps)$|dxg$|nvmap$|nvhost-gpu$")


def pci(host: Host, facts: MachineFacts) -> Part:
    """List NVIDIA cards on the PCI bus and the device nodes of their driver."""
    if host.system != "linux":
        return not_run("only Linux shows its devices as files")
    nodes = tuple(f"/dev/{name}" for name in host.names("/dev") if NODE.match(name))
    if facts.is_wsl:
        return not_run("WSL shows cards as /dev/dxg only", device_nodes=nodes)
    if not host.exists(DEVICES):
        return not_run("this machine shows no PCI bus", device_nodes=nodes)
    return found(pci_gpus=cards(host), device_nodes=nodes)


def cards(host: Host) -> tuple[str, ...]:
    """Return addresses of NVIDIA's display controllers on the PCI bus."""
    return tuple(
        address
        for address in host.names(DEVICES)
        if host.text(f"{DEVICES}/{address}/vendor", limit=16).strip() == NVIDIA
        and host.text(f"{DEVICES}/{address}/class", limit=16).startswith(DISPLAY)
    )


def no_device(facts: MachineFacts) -> str:
    """Return why nothing of NVIDIA's can be asked here; empty where something may answer."""
    if facts.system == "macos":
        return "macOS has no NVIDIA driver"
    if facts.system == "windows":
        return "" if facts.driver.library_path else "this Windows has no NVIDIA driver"
    if facts.pci_gpus or facts.device_nodes or facts.is_jetson:
        return ""
    return "" if facts.driver.version else "there is no NVIDIA device"
