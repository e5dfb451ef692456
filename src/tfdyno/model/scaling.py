"""Data-parallel training: the gradient exchange and how much of it the backward pass hides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.explanation import Exchange
from tfdyno.model.parts import Part, product
from tfdyno.model.terms import factors_of

if TYPE_CHECKING:
    from tfdyno.core.hardware import Gpu, Link
    from tfdyno.core.time_model import Constants

BACKWARD_SHARE = 2.0 / 3.0
"""Share of a training step's device time: the backward pass costs two forward passes."""
PEERLESS_FROM_CAPABILITY = (8, 0)
"""GeForce cards from Ampere on have no peer-to-peer copies over PCIe."""


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
    """Whether two cards exchange data without a detour through the host's memory."""
    if link.kind != "PCIe" or gpu.market != "consumer":
        return True
    major, _, minor = gpu.compute_capability.partition(".")
    return (int(major), int(minor or 0)) < PEERLESS_FROM_CAPABILITY


def link_shares(*, replicas: int, gpu: Gpu, link: Link, constants: Constants) -> tuple[Part, ...]:
    """What gradients attain of a link's bus bandwidth, factor by factor."""
    parts = []
    if link.kind == "PCIe":
        parts.append(Part("bandwidth share, PCIe", constants["allreduce_pcie"], "allreduce_pcie"))
    if not has_peer_copies(gpu, link):
        slower, crowding = constants["allreduce_no_peer"], constants["allreduce_crowding"]
        parts.append(Part("bandwidth share, by the host", slower, "allreduce_no_peer"))
        crowd = (2.0 / replicas) ** crowding
        parts.append(Part("(2 / cards)^value, one host", crowd, "allreduce_crowding"))
    return tuple(parts)


def communication_s(
    *,
    gradient_bytes: float,
    replicas: int,
    gpu: Gpu,
    link: Link,
    device_s: float,
    execution: str,
    constants: Constants,
) -> tuple[float, float]:
    """Seconds of the whole exchange, and of the part that delays the step; see ``exchange``."""
    found = exchange(
        gradient_bytes=gradient_bytes,
        replicas=replicas,
        gpu=gpu,
        link=link,
        device_s=device_s,
        execution=execution,
        constants=constants,
    )
    return found.whole_s, found.exposed_s


def exchange(
    *,
    gradient_bytes: float,
    replicas: int,
    gpu: Gpu,
    link: Link,
    device_s: float,
    execution: str,
    constants: Constants,
) -> Exchange:
    """Predict the gradient exchange of one step.

    Buckets are sent while the backward pass still runs, so only what exceeds the hidden part, and
    at least the last bucket, delays the step; so does waiting for the slowest replica. ::

        sent    = 2 (n - 1) / n * gradients / (bus bandwidth * shares)
        hops    = 2 (n - 1) * latency * gradients / bucket
        exposed = max(last bucket, sent + hops - hidden) + waiting

    Args:
        gradient_bytes: Gradients of one replica.
        replicas: GPUs that train together.
        gpu: The card.
        link: What joins the cards.
        device_s: Device time of the step on one card.
        execution: How the step runs: PyTorch overlaps better than TensorFlow.
        constants: Global constants of the time model.
    """
    shares = link_shares(replicas=replicas, gpu=gpu, link=link, constants=constants)
    rate = link.bus_bytes_per_s * float(product(shares))
    overlap = "allreduce_overlap" + ("_torch" if execution == "eager-torch" else "")
    bucket = min(gradient_bytes, constants["allreduce_bucket_bytes"])
    buckets = gradient_bytes / bucket if bucket else 0.0
    sent_s = ring_all_reduce_s(gradient_bytes, replicas, bus_bytes_per_s=rate, latency_s=0.0)
    hops_s = buckets * ring_all_reduce_s(
        0.0, replicas, bus_bytes_per_s=rate, latency_s=link.latency_s
    )
    alone = replicas == 1 or not gradient_bytes
    hidden_s = 0.0 if alone else constants[overlap] * BACKWARD_SHARE * device_s
    waiting_s = 0.0 if alone else constants["allreduce_fixed"] * device_s
    last_s = (sent_s + hops_s) / buckets if buckets else 0.0
    return Exchange(
        link=link.slug,
        replicas=replicas,
        payload_bytes=gradient_bytes,
        bus_bytes_per_s=link.bus_bytes_per_s,
        shares=factors_of(shares),
        sent_s=sent_s,
        bucket_bytes=bucket,
        latency_s=link.latency_s,
        hops_s=hops_s,
        hidden_s=hidden_s,
        waiting_s=waiting_s,
        whole_s=sent_s + hops_s + waiting_s,
        exposed_s=max(last_s, sent_s + hops_s - hidden_s) + waiting_s,
        constants=(overlap, "allreduce_bucket_bytes", "allreduce_fixed"),
        source=link.source,
    )
