"""Data-parallel training: the gradient exchange and how much of it the backward pass hides."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    """Predict the gradient exchange of one step.

    Buckets are sent while the backward pass still runs, so only what exceeds the hidden part, and
    at least the last bucket, delays the step; so does waiting for the slowest replica.

    Args:
        gradient_bytes: Gradients of one replica.
        replicas: GPUs that train together.
        gpu: The card.
        link: What joins the cards.
        device_s: Device time of the step on one card.
        execution: How the step runs: PyTorch overlaps better than TensorFlow.
        constants: Global constants of the time model.

    Returns:
        Seconds of the whole exchange, and of the part that delays the step.
    """
    if replicas == 1 or gradient_bytes == 0:
        return 0.0, 0.0
    share = constants["allreduce_pcie"] if link.kind == "PCIe" else 1.0
    if not has_peer_copies(gpu, link):
        crowd = (2.0 / replicas) ** constants["allreduce_crowding"]
        share *= constants["allreduce_no_peer"] * crowd
    rate = link.bus_bytes_per_s * share
    bucket = min(gradient_bytes, constants["allreduce_bucket_bytes"])
    last = ring_all_reduce_s(bucket, replicas, bus_bytes_per_s=rate, latency_s=link.latency_s)
    total = last * gradient_bytes / bucket
    overlap = "allreduce_overlap" + ("_torch" if execution == "eager-torch" else "")
    hidden = constants[overlap] * BACKWARD_SHARE * device_s
    waiting = constants["allreduce_fixed"] * device_s
    return total + waiting, max(last, total - hidden) + waiting
