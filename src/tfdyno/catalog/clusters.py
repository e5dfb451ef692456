"""Clusters: which links join so many GPUs, in one machine or in several."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tfdyno.catalog.links import (
    ALONE,
    cannot_join,
    default_link,
    find_link,
    is_network,
    most_in_one_machine,
    own_network,
    ports_per_gpu,
    usual_in_a_node,
)
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.hardware import Cluster, Gpu, Link

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_PORTS = 32
BRIDGE = "NVLink bridge"
"""Kind of a link that joins two cards only."""
_PORTS = re.compile(r"(\d+)x(?=[a-z])")


def find_network(text: str) -> tuple[Link, int]:
    """Find the network of ``ib-hdr-200`` or ``8xib-hdr-200`` and its ports per node (0: not told).

    Raises:
        UsageError: There is no such network, or so many ports are not possible.
    """
    name = text.strip().lower()
    told = _PORTS.match(name)
    link = find_link(name[told.end() :] if told else name, as_network=True)
    if not is_network(link):
        raise UsageError(
            f"{link.slug} is no network", why=f"{link.kind} joins the GPUs of one machine",
            remedy="name it with --link, and with --network what joins the machines",
        )  # fmt: skip
    ports = int(told[1]) if told else 0
    if told and not 1 <= ports <= MOST_PORTS:
        raise UsageError(f"{ports} ports on a node are not possible",
                         remedy=f"give 1 to {MOST_PORTS}")  # fmt: skip
    if ports > 1 and not is_per_port(link):
        raise UsageError(f"{link.slug} is told for a whole node: {link.scope}",
                         remedy=f"name it as {link.slug}")  # fmt: skip
    return link, ports


def is_per_port(link: Link) -> bool:
    """Return whether a network's bandwidth is that of one port; others are told by the node."""
    return link.scope.endswith("port")


def usual_ports(gpu: Gpu, gpus_per_node: int) -> int:
    """Return ports of the network that machines with this card usually have.

    So many for each GPU as ``network_ports.csv`` has for what joins the GPUs of the board; one
    where it has no line.
    """
    per_gpu = ports_per_gpu(default_link(gpu, gpus_per_node)) if gpus_per_node > 1 else 0.0
    return max(1, int(gpus_per_node * per_gpu))


def cluster_of(
    gpu: Gpu,
    replicas: int,
    *,
    link: str = "",
    network: str = "",
    gpus_per_node: int = 0,
) -> Cluster:
    """Return the cluster of so many GPUs.

    Args:
        gpu: The card.
        replicas: GPUs in all.
        link: Slug of what joins the GPUs of a node; empty, or one that these cards lack: the one
            that they have by themselves. A network joins them all where one machine holds them.
        network: What joins the nodes, as ``find_network`` reads it; empty: one node, however
            large, or the network that cards sold one to a machine have.
        gpus_per_node: 0: as many as a node usually has where a network is named.

    Raises:
        UsageError: A link is unknown, the network is named twice, GPUs do not fill the nodes,
            nodes lack a network, or a machine has one such card only.
    """
    named, network, gpus_per_node = _settled(gpu, replicas, link, network, gpus_per_node)
    each = gpus_per_node or (min(replicas, usual_in_a_node(gpu)) if network else replicas)
    each = min(each, replicas)
    _check(gpu, replicas, each, network)
    nodes = replicas // each
    joined = find_network(network) if network and nodes > 1 else None
    ports = 1
    if joined and is_per_port(joined[0]):
        ports = joined[1] or usual_ports(gpu, each)
    bridged = named if named and named.kind == BRIDGE else None
    inside = named if named and not bridged else None
    return Cluster(
        gpu=gpu,
        nodes=nodes,
        gpus_per_node=each,
        inside=(inside or default_link(gpu, each)) if each > 1 else None,
        bridge=bridged if each > 1 else None,
        network=joined[0] if joined else None,
        ports=ports,
    )


def check_named_once(link: str, network: str) -> None:
    """Refuse a network in ``link`` beside another one; raises ``UsageError``."""
    if link and network and is_network(find_link(link)):
        raise UsageError(
            "name the network once", why=f"--link {link} is a network, as --network {network} is",
            remedy="leave --link out, or name what joins the GPUs of one machine",
        )  # fmt: skip


def layout_of(gpus: Sequence[Gpu], counts: Sequence[int]) -> int:
    """Return GPUs per node where the link is a network: the same for every count of a series.

    One, where a machine would hold the most that are asked for; else 0, as many as a node has.
    """
    return int(all(max(counts) <= most_in_one_machine(gpu) for gpu in gpus))


def _settled(
    gpu: Gpu, replicas: int, link: str, network: str, gpus_per_node: int
) -> tuple[Link | None, str, int]:
    """Return the link inside a node, the network and the GPUs of a node, from what was named."""
    check_named_once(link, network)
    named = find_link(link) if link else None
    if named and is_network(named):
        return None, link, gpus_per_node or layout_of([gpu], [replicas])
    if named and cannot_join(gpu, named):
        named = None
    own = own_network(gpu)
    if own and not network and not gpus_per_node:
        return named, own.slug, 1
    return named, network, gpus_per_node


def _check(gpu: Gpu, replicas: int, each: int, network: str) -> None:
    if each > 1 and gpu.market in ALONE:
        raise UsageError(
            f"{gpu.name} is the only card of its machine",
            why=f"{each} of them would need {each} machines",
            remedy="name what joins the machines with --network, eth-10g for example",
        )
    if replicas % each:
        raise UsageError(
            f"{replicas} replicas do not fill nodes of {each} x {gpu.name}",
            remedy=f"give a multiple of {each}, or --gpus-per-node",
        )
    if replicas > each and not network:
        raise UsageError(
            f"{replicas // each} nodes need a network between them",
            remedy="name it with --network, ib-hdr-200 or eth-25g for example",
        )
