"""Which processors are near to which memory and to which card, and what a process may use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tfdyno.core.cluster.cluster_facts import NumaNode

if TYPE_CHECKING:
    from tfdyno.probe.base.host import Host

NODES = "/sys/devices/system/node"
DEVICES = "/sys/bus/pci/devices"


def numa_nodes(host: Host) -> tuple[NumaNode, ...]:
    """Return the NUMA nodes that have processors; none where the system does not tell."""
    found = []
    for name in host.names(NODES):
        number = re.fullmatch(r"node(\d+)", name)
        if number and (cpus := cpu_list(host.text(f"{NODES}/{name}/cpulist"))):
            found.append(NumaNode(number=int(number[1]), cpus=cpus))
    return tuple(sorted(found, key=lambda node: node.number))


def cpu_list(text: str) -> tuple[int, ...]:
    """Read processors as the kernel lists them: ``0-3,8,10-11``; none where it cannot be read."""
    found: list[int] = []
    for part in filter(None, text.strip().split(",")):
        ends = re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip())
        if not ends:
            return ()
        found += range(int(ends[1]), int(ends[2] or ends[1]) + 1)
    return tuple(found)


def numa_of(host: Host, bus: str) -> int:
    """Return a PCI device's NUMA node; -1 where the machine has one or does not tell.

    Args:
        host: Where to look.
        bus: As NVML writes it, ``00000000:65:00.0``, or as the kernel does, ``0000:65:00.0``.
    """
    domain, _, rest = bus.strip().lower().partition(":")
    text = host.text(f"{DEVICES}/{domain[-4:]}:{rest}/numa_node").strip()
    return int(text) if text.isdecimal() else -1
