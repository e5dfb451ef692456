"""Data-parallel training: the gradient exchange and how much of it the backward pass hides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.explanation import Exchange
from tfdyno.core.choose.hardware import Link
from tfdyno.model.time.parts import Part, product
from tfdyno.model.time.terms import factors_of

if TYPE_CHECKING:
    from tfdyno.core.choose.hardware import Cluster, Gpu
    from tfdyno.core.choose.time_model import Constants
    from tfdyno.core.choose.workload import Trace

BACKWARD_SHARE = 2.0 / 3.0
"""Share of a training step's device time: the backward pass costs two forward passes."""
PEERLESS_FROM_CAPABILITY = (7, 5)
"""GeForce cards from Turing on have no peer-to-peer copies over PCIe (tensorflow issue 24677)."""
THROUGH_HOST, PEER = "PCIe through host", "PCIe with peer access"
"""Kinds of links that say themselves whether cards copy to each other."""
CROWDED_FROM_PCIE = "4"
"""Generation of PCIe from which cards share the way through the host's memory.

Published boxes of PCIe 3.0 (Xeon) lose nothing with 8 cards, those of 4.0 (EPYC) three quarters
or more: it is the host that differs, and the card's generation is what the catalogue knows of it.
"""
OVERLAPS = {
    "graph": "allreduce_overlap",
    "xla": "allreduce_overlap_xla",
    "eager-torch": "allreduce_overlap_torch",
    "compiled-torch": "allreduce_overlap_torch",
}
"""Execution -> constant: how much of the backward pass hides the exchange."""
EVEN_LOSS = 0.03
"""Scatter where nothing is lost, for a width of 1: with the width in use on one node, some 1.3,
about the 3.6 % that nine of ten published runs lie around the mean of their repeats, at
efficiencies above 0.9."""
_SIXTEEN_BITS = ("mixed_float16", "mixed_bfloat16", "float16", "bfloat16")


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """The slowest part of the way that gradients take, and what they attain of it."""

    link: Link
    bus_bytes_per_s: float
    shares: tuple[Part, ...]
    constants: tuple[str, ...] = ()
    """Constants that ``bus_bytes_per_s`` is itself."""

    @property
    def bytes_per_s(self) -> float:
        """Bus bandwidth as NCCL's tests define it."""
        return self.bus_bytes_per_s * float(product(self.shares))


def ring_all_reduce_s(
    payload_bytes: float, ranks: int, *, bus_bytes_per_s: float, latency_s: float
) -> float:
    """Predict the time to sum one buffer over all ranks of a ring.

    ``2 (n - 1) / n`` of the buffer passes every link in ``2 (n - 1)`` hops (Patarasuk and Yuan,
    "Bandwidth optimal all-reduce algorithms", JPDC 69(2), 2009); ``bus_bytes_per_s`` is the bus
    bandwidth as NCCL's tests define it, which already divides that factor out.

    Raises:
        ValueError: ``ranks`` is below 1 or ``payload_bytes`` is negative.
    """
    if ranks < 1 or payload_bytes < 0:
        raise ValueError(f"need ranks >= 1 and payload_bytes >= 0, got {ranks}, {payload_bytes}")
    hops = 2 * (ranks - 1)
    return hops / ranks * payload_bytes / bus_bytes_per_s + hops * latency_s


def has_peer_copies(gpu: Gpu, link: Link) -> bool:
    """Return whether two cards exchange data without a detour through the host's memory.

    Where the link does not say it, the card does.
    """
    if link.kind in (THROUGH_HOST, PEER):
        return link.kind == PEER
    if link.kind != "PCIe" or gpu.market != "consumer":
        return True
    major, _, minor = gpu.compute_capability.partition(".")
    return (int(major), int(minor or 0)) < PEERLESS_FROM_CAPABILITY


def way_of(cluster: Cluster, constants: Constants) -> Way:
    """Return the slowest part of the ring through all GPUs of a cluster.

    ::

        bandwidth = min(link inside a node, ports * network * share)

    Raises:
        ValueError: Several nodes, and no network between them, or nothing to exchange at all.
    """
    ways = [_inside(cluster, constants)] if cluster.gpus_per_node > 1 else []
    if cluster.nodes > 1:
        if cluster.network is None:
            raise ValueError(f"{cluster.nodes} nodes need a network between them")
        share = Part("bandwidth share, network", constants["allreduce_network"],
                     "allreduce_network")  # fmt: skip
        rate = cluster.network.bus_bytes_per_s * cluster.ports
        ways.append(Way(link=cluster.network, bus_bytes_per_s=rate, shares=(share,)))
    if not ways:
        raise ValueError("one GPU has nothing to exchange")
    return min(ways, key=lambda way: way.bytes_per_s)


def _inside(cluster: Cluster, constants: Constants) -> Way:
    bridge, link = cluster.bridge, cluster.inside
    if bridge and (cluster.gpus_per_node == 2 or link is None):
        return Way(link=bridge, bus_bytes_per_s=bridge.bus_bytes_per_s, shares=())
    assert link is not None  # Cluster refuses several GPUs that nothing joins
    if has_peer_copies(cluster.gpu, link):
        share = Part("bandwidth share, PCIe", constants["allreduce_pcie"], "allreduce_pcie")
        shares = (share,) if link.kind.startswith("PCIe") else ()
        return Way(link=link, bus_bytes_per_s=link.bus_bytes_per_s, shares=shares)
    crossings = cluster.gpus_per_node / (2 if bridge else 1)
    crowd = min(1.0, 2.0 / crossings) ** constants["allreduce_crowding"]
    crowded = Part("(2 / cards)^value, one host", crowd, "allreduce_crowding")
    return Way(
        link=link,
        bus_bytes_per_s=constants["allreduce_host"],
        shares=(crowded,) if cluster.gpu.pcie_generation >= CROWDED_FROM_PCIE else (),
        constants=("allreduce_host",),
    )


def slowest_of(replicas: int) -> float:
    """Return about how many standard deviations the slowest of so many lies behind the mean.

    ``sqrt(2 ln n)``: the bound of the expected largest of n normal values.
    """
    return math.sqrt(2.0 * math.log(replicas))


def exchange(
    *,
    gradient_bytes: float,
    cluster: Cluster,
    device_s: float,
    execution: str,
    packed: bool = False,
    constants: Constants,
) -> Exchange:
    """Predict the gradient exchange of one step on two GPUs or more.

    Buckets are sent while the backward pass still runs, so only what exceeds the hidden part, and
    at least the last bucket, delays the step; so do waiting for the slowest replica, and the time
    until the programs of all hosts agree that they exchange. ::

        sent    = 2 (n - 1) / n * gradients / bandwidth
        hops    = (2 (g - 1) * latency + 2 log2(nodes) * network latency) * gradients / bucket
        exposed = max(last bucket, sent + hops - hidden) + waiting + start

    Args:
        gradient_bytes: Gradients of one replica.
        cluster: The GPUs, and what joins them.
        device_s: Device time of the step on one card.
        execution: How the step runs: it decides how well the exchange overlaps.
        packed: All gradients are one bucket, which is sent after the backward pass, as
            ``tf.distribute`` does without ``bytes_per_pack``: nothing is hidden.
        constants: Global constants of the time model.
    """
    way, n = way_of(cluster, constants), cluster.replicas
    overlap = OVERLAPS[execution]
    bucket = gradient_bytes if packed else min(gradient_bytes, constants["allreduce_bucket_bytes"])
    buckets = gradient_bytes / bucket if bucket else 0.0
    sent_s = ring_all_reduce_s(gradient_bytes, n, bus_bytes_per_s=way.bytes_per_s, latency_s=0.0)
    near = cluster.bridge if cluster.inside is None else cluster.inside
    latency_s = near.latency_s if near and cluster.gpus_per_node > 1 else 0.0
    network_s = cluster.network.latency_s if cluster.network and cluster.nodes > 1 else 0.0
    each_s = 2 * (cluster.gpus_per_node - 1) * latency_s + 2 * math.log2(cluster.nodes) * network_s
    hops_s = buckets * each_s
    hides = bool(gradient_bytes) and not packed
    hidden_s = constants[overlap] * BACKWARD_SHARE * device_s if hides else 0.0
    waiting_s = slowest_of(n) * constants["allreduce_fixed"] * device_s if gradient_bytes else 0.0
    start_s = _start_s(device_s, constants) if gradient_bytes else 0.0
    last_s = (sent_s + hops_s) / buckets if buckets else 0.0
    return Exchange(
        link=way.link.slug,
        replicas=n,
        nodes=cluster.nodes,
        payload_bytes=gradient_bytes,
        bus_bytes_per_s=way.bus_bytes_per_s,
        shares=factors_of(way.shares),
        sent_s=sent_s,
        bucket_bytes=bucket,
        latency_s=latency_s,
        network_latency_s=network_s,
        hops_s=hops_s,
        hidden_s=hidden_s,
        waiting_s=waiting_s,
        start_s=start_s,
        whole_s=sent_s + hops_s + waiting_s + start_s,
        exposed_s=max(last_s, sent_s + hops_s - hidden_s) + waiting_s + start_s,
        constants=(
            *way.constants,
            *((overlap,) if hides else ()),
            "allreduce_bucket_bytes",
            "allreduce_fixed",
            "allreduce_start",
            "allreduce_shortest_step",
        ),
        source=way.link.source,
    )


def _start_s(device_s: float, constants: Constants) -> float:
    """No step shorter than a certain one was published: below it the same share is taken."""
    return constants["allreduce_start"] * min(1.0, device_s / constants["allreduce_shortest_step"])


def efficiency_ends(efficiency_ratio: float, width: float) -> tuple[float, float]:
    """Return low and high end of an efficiency; the high one may lie above 1, as measured ones do.

    What is predicted is a delay beside the step alone. It may be off by a factor, so the range is
    wide where the exchange decides and narrow where it does not. ::

        delay = 1 / efficiency - 1
        low   = exp(-EVEN_LOSS * w) / (1 + delay * exp(w))
        high  = exp(+EVEN_LOSS * w) / (1 + delay * exp(-w))

    Args:
        efficiency_ratio: Predicted, above 0.
        width: Logarithm of the factor by which the delay may be off.
    """
    delay = max(0.0, 1.0 / efficiency_ratio - 1.0)
    even, factor = math.exp(EVEN_LOSS * width), math.exp(width)
    return 1.0 / even / (1.0 + delay * factor), even / (1.0 + delay / factor)


def efficiency_range(
    efficiency_ratio: float, constants: Constants, *, nodes: int = 1, unexplained: bool = False
) -> Interval:
    """Return the 90 % interval of an efficiency, not above 1.

    Args:
        efficiency_ratio: Predicted.
        constants: Global constants of the time model.
        nodes: Of several more is not known: other traffic, slow storage.
        unexplained: Of a run of the kind that ``loses_more`` names: the low end reaches down.
    """
    best = min(1.0, efficiency_ratio)
    width = constants["allreduce_width_nodes" if nodes > 1 else "allreduce_width"]
    low, high = efficiency_ends(best, width)
    if unexplained:
        low = min(low, best * constants["allreduce_half"])
    return Interval(low=min(low, best), best=best, high=min(1.0, high))


def loses_more(trace: Trace, policy: str, execution: str) -> bool:
    """Return whether published runs of this kind lost more than their exchange explains.

    Networks with batch normalisation, as a graph in 16 bits: 0.5 to 0.8 of what one GPU does,
    over every link.

    Args:
        trace: What was traced.
        policy: Precision that is estimated; empty: the trace's own.
        execution: xla, graph, or another program.
    """
    normalised = any("moving_variance" in one.name for one in trace.tensors)
    return execution == "graph" and (policy or trace.policy) in _SIXTEEN_BITS and normalised
