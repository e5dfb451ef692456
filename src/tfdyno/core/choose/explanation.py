"""Why an estimate says what it says: every kernel's price with its numbers, so that one can argue.

A term of a price is worked out as ::

    seconds = amount * more / (rate * shares)        arithmetic and traffic
    seconds = amount * more * seconds of each        launches
"""

from __future__ import annotations

from typing import Literal

from tfdyno.core.base.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A number of the time model and where it comes from."""

    name: str
    value: float
    unit: str
    fitted: bool
    """Fitted to measurements; else taken from the source as it stands."""
    identified: bool
    """False where a fit ended at ``low`` or ``high``: then measurements do not say its size."""
    low: float
    high: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """What the card could do at best: a rate of its data sheet and how it is made up."""

    name: str
    """bandwidth, or a unit of arithmetic as ``model/time/peaks.py`` spells it (``fp16_tensor``)."""
    rate_per_s: float
    """FLOP/s or bytes/s, already multiplied by ``held_ratio``."""
    unit: Literal["FLOP", "B"]
    sm_count: int
    """0 for a bandwidth, as the next two."""
    flops_per_clock: float
    """FLOPs of one streaming multiprocessor in a clock."""
    clock_hz: float
    held_ratio: float
    """Share of its clock that the card holds under load."""
    held_source: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """One factor of a term."""

    name: str
    """What it stands for, in words."""
    constant: str
    """Name of the constant behind it; empty where it follows from the kernel's own sizes."""
    factor_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A part of a kernel's time with all that it was worked out from."""

    cause: Literal["compute", "memory", "overlap", "launch"]
    """``overlap``: bytes that overlapping windows read again."""
    amount: float
    unit: Literal["FLOP", "B", "launches"]
    more: tuple[Factor, ...]
    """Multiplies the amount."""
    peak: str
    """Name of the ``Peak``; empty for launches."""
    rate_per_s: float
    """0 for launches."""
    shares: tuple[Factor, ...]
    """Multiplies the rate: what kernels of this class attain of it."""
    each_s: float
    """The time of one launch; 0 for other terms."""
    each: str
    """Constant behind ``each_s``."""
    time_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPrice:
    """Kernels of one class, dtype, size, direction and phase, and what they cost together."""

    kind: str
    dtype: str
    direction: str
    phase: str
    shape: str
    """What makes its price special: narrow, grouped, depthwise, volume, winograd3, winograd5."""
    route: str
    """How its arithmetic is done; empty where bytes alone are priced."""
    dims: dict[str, tuple[int, ...]]
    """The dimensions as in ``Kernel.dims``, at the batch of the estimate."""
    layers: tuple[str, ...]
    """Layers of the user's model, those that move most bytes first."""
    count: int
    """Launches of the program."""
    time_s: float
    share_ratio: float
    """The share of the step."""
    flops: float
    traffic_bytes: float
    smallest_bytes: float
    """Traffic of the smallest launch among them."""
    largest_bytes: float
    terms: tuple[Term, ...]
    peak_ratio: float | None
    """FLOPs a second over the peak of the unit; None where bytes alone are priced."""
    bandwidth_ratio: float
    """Bytes a second over the card's bandwidth."""
    bound_by: str
    """The cause that takes longest: compute, memory or launch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherKernels:
    """Kernels of one kind that are not listed one by one."""

    kind: str
    count: int
    time_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """The exchange of gradients between replicas: a ring in every node, a tree between nodes."""

    link: str
    """The slowest link on the way."""
    replicas: int
    nodes: int
    payload_bytes: float
    """Gradients of one replica."""
    bus_bytes_per_s: float
    """The bandwidth of the link, or of the host's memory where the cards have no way of their own.
    """
    shares: tuple[Factor, ...]
    """How many share that bandwidth."""
    sent_s: float
    """``2 (n - 1) / n * payload / (bus * shares)``."""
    bucket_bytes: float
    latency_s: float
    """The latency of one hop inside a node."""
    network_latency_s: float
    """The latency of one hop between nodes; 0 on one node."""
    hops_s: float
    """``2 (g - 1) * latency + 2 log2(nodes) * network latency`` for every bucket."""
    hidden_s: float
    """What the backward pass may hide of these two."""
    waiting_s: float
    """The time spent waiting for the slowest replica."""
    start_s: float
    """The time until the programs of all hosts agree that they exchange."""
    whole_s: float
    exposed_s: float
    """What delays the step: what is not hidden, the last bucket at least, waiting, start."""
    constants: tuple[str, ...]
    """Names of the constants behind the bandwidth, what is hidden and waited for."""
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Width:
    """How the range around the best figure was made."""

    bucket: str
    """``cnn/train/xla``: family of models, mode and execution of the measurements behind it."""
    log_half_width_ratio: float
    """The range is ``best / exp(w)`` to ``best * exp(w)``."""
    groups: int
    """Models on a card that it was learned from."""
    reasons: tuple[str, ...]
    """Why it is not the bucket's own width, one sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCost:
    """What the host pays for launches of one kind."""

    count: int
    what: Literal["kernels", "kernels in loops", "convolutions"]
    each_s: float
    constant: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The time of a step taken apart; the parts add up to ``step_s``.

    ::

        device = sum of kernels + sum of other kernels
        step   = device + waiting + fixed + exchange that is not hidden
    """

    step_s: float
    """The time of the step by the model alone."""
    measured_ratio: float
    """What the user's own measurements multiply it by; 1 without."""
    device_s: float
    device_by_cause_s: dict[str, float]
    """compute, memory, launch."""
    count: int
    """Launches of the program."""
    host_s: float
    """What the host needs for them, beside the device."""
    host: tuple[HostCost, ...]
    """Its parts; convolutions may cost more than other kernels."""
    waiting_s: float
    """How much longer the step is because the device waits for the host."""
    fixed_s: float
    """Once per step."""
    fixed_constant: str
    exchange: Exchange | None
    kernels: tuple[KernelPrice, ...]
    """Longest first."""
    others: tuple[OtherKernels, ...]
    """Longest first."""
    peaks: tuple[Peak, ...]
    constants: tuple[Constant, ...]
    """All that the lines above name, in order of their names."""
    width: Width
    sum_rule: Literal["powers", "slower"] = "powers"
    """How device and host make a step: by the fourth root of the sum of their fourth powers, or by
    the slower of the two (of the update apart, where the device runs empty before it)."""
