"""Network interfaces of this machine, and which of them an address leads to."""

from __future__ import annotations

import contextlib
import re
import socket
from typing import TYPE_CHECKING

from tfdyno.core.cluster.cluster_facts import Interface, InterfaceKind

if TYPE_CHECKING:
    from tfdyno.probe.base.host import Host

MBIT_BYTES = 1e6 / 8
GBIT_BYTES = 1e9 / 8
NET = "/sys/class/net"
INFINIBAND = "/sys/class/infiniband"
BRIDGES = ("docker", "br-", "virbr", "cni", "lxcbr", "podman", "flannel", "kube-bridge")
"""How programs for containers name interfaces that lead to nobody outside of the machine."""
_RATE = re.compile(r"([\d.]+) Gb/sec")


def interfaces(host: Host) -> tuple[Interface, ...]:
    """Return all interfaces with their addresses, by name."""
    import psutil

    known = psutil.net_if_addrs()
    states = psutil.net_if_stats()
    families = (socket.AF_INET, socket.AF_INET6)
    found = []
    for name, entries in sorted(known.items()):
        state = states.get(name)
        addresses = (one.address.partition("%")[0] for one in entries if one.family in families)
        found.append(
            Interface(
                name=name,
                addresses=tuple(addresses),
                is_up=bool(state and state.isup),
                kind=_kind(host, name),
                bytes_per_s=_speed(host, name),
            )
        )
    return tuple(found)


def resolved(name: str) -> tuple[str, ...]:
    """List a host's IP addresses on this machine, in the resolver's order; none: not known."""
    found = []
    with contextlib.suppress(OSError, UnicodeError):
        for *_, place in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM):
            found.append(str(place[0]).partition("%")[0])
    return tuple(dict.fromkeys(found))


def infiniband_bytes_per_s(host: Host) -> float:
    """Return rates of all active InfiniBand and RoCE ports together; 0 where there is none."""
    total = 0.0
    for device in host.names(INFINIBAND):
        for port in host.names(f"{INFINIBAND}/{device}/ports"):
            folder = f"{INFINIBAND}/{device}/ports/{port}"
            rate = _RATE.match(host.text(f"{folder}/rate").strip())
            if rate and "ACTIVE" in host.text(f"{folder}/state"):
                total += float(rate[1]) * GBIT_BYTES
    return total


def _kind(host: Host, name: str) -> InterfaceKind:
    folder = f"{NET}/{name}"
    if name == "lo" or host.text(f"{folder}/type").strip() == "772":  # ARPHRD_LOOPBACK
        return "loopback"
    if host.exists(f"{folder}/bridge") and name.startswith(BRIDGES):
        return "bridge"
    return "wire" if host.exists(f"{folder}/device") else "virtual"


def _speed(host: Host, name: str) -> float:
    """Return what the driver tells; -1 and nothing mean that it does not."""
    text = host.text(f"{NET}/{name}/speed").strip()
    return int(text) * MBIT_BYTES if text.isdecimal() else 0.0
