"""What the tool answers: predicted time and memory with their intervals, causes and sources."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.explanation import Explanation
from tfdyno.core.choose.program import Rematerialisation

Route = Literal["quick", "exact"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTime:
    """Seconds of a step spent in one layer, by phase and by class of kernel."""

    layer: str
    step_s: float
    by_phase_s: dict[str, float]
    by_class_s: dict[str, float]
    flops: float
    traffic_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflinePoint:
    """A group of like kernels on the roofline: rate against intensity, area = time."""

    label: str
    kind: str
    intensity_flops_per_byte: float
    rate_flops_per_s: float
    time_s: float
    launches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBuffer:
    """A tensor that the program holds at the moment of its peak."""

    name: str
    layer: str
    """The layer of the user's model; empty where it belongs to none."""
    part: str
    """A key of ``memory_parts_bytes``."""
    dtype: str
    held_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Predicted time and memory of one step on one kind of GPU."""

    gpu: str
    replicas: int
    link: str
    """Slug of what joins the GPUs of a node, else the nodes; empty for one GPU."""
    batch_size: int
    """Samples of each replica."""
    global_batch_size: int
    mode: str
    precision: str
    execution: str
    step_s: Interval
    samples_per_s: Interval
    """The rate of all replicas together."""
    peak_memory_bytes: Interval
    """Buffers of the program and library workspaces."""
    memory_parts_bytes: dict[str, float]
    """weights, gradients, optimizer, activations, inputs, workspace, context, allocator."""
    context_bytes: float
    device_memory_bytes: Interval
    """All of it with context and allocator slack: what decides ``fits``."""
    usable_memory_bytes: float
    fits: Literal["yes", "no", "unverified", "may not"]
    max_batch_size: int | None
    """0: not even one sample fits. ``MOST_SAMPLES``: so many or more. None: not known, because the
    batch is part of the model."""
    max_batch_verified: bool
    """Whether it was compiled for the card's own memory."""
    bound_by: str
    terms_s: dict[str, float]
    """compute, memory, launch, communication, input: seconds per cause before overlap."""
    flops_per_step: float
    mfu_ratio: float
    """Share of the dense peak of the unit that the precision uses."""
    energy_j_per_step: Interval
    """The energy of all replicas, without the host."""
    compile_s: Interval
    """First step: what XLA needs to compile it."""
    made_by: dict[str, Route]
    """``time`` and ``memory``: the route that made each."""
    copy_s: Interval | None = None
    """What ``fit`` takes beside ``step_s`` to copy each batch from the host's memory, unless the
    pipeline does so ahead; None: not known, as of JAX, or nothing is copied."""
    fit_step_s: Interval | None = None
    """A step of ``fit`` with data in the host's memory: ``step_s``, ``copy_s`` and what Keras does
    between two steps; None: as ``copy_s``."""
    software: str = ""
    """Release that the answer is for: ``TensorFlow 2.21``; empty: not known."""
    generation: str = ""
    """The software whose measured steps stand behind the time: ``2026``."""
    swept_by: str = ""
    """Sweep of the card that the time rests on, in words; empty: none."""
    compiled_for: str = ""
    """GPU family whose program stands behind an ``exact`` route (``8.x``): the card's own or one
    that was measured to serve it too, compiled for one card of it; empty where none does."""
    fits_verified: bool = False
    """Whether ``fits`` is a yes or no that rests on a compile at this very batch.

    Where XLA does not run, the compiled plan has to leave room for what is not fused.
    """
    rematerialisation: Rematerialisation | None = None
    """What XLA computes again to hold this batch, where it was compiled for the card's own memory
    (``fits_verified``); None: everything is kept, or it was not compiled so."""
    max_batch_rematerialisation: Rematerialisation | None = None
    """The same of ``max_batch_size``, where that is verified."""
    memory_measured_on: str = ""
    """Card of this generation on which predicted memory of such steps was compared with what it
    held; empty: unverified."""
    process_memory_bytes: Interval | None = None
    """What nvidia-smi shows of TensorFlow with memory growth: it doubles what it takes and keeps
    what autotuning took. Nothing that the step needs."""
    nodes: int = 1
    network: str = ""
    """Slug of what joins the nodes, with its ports where there are several (``8xib-hdr-200``)."""
    forward_ratio: float = 0.0
    """Share of the step that its forward pass takes, without the exchange of gradients: about what
    a batch of validation takes."""
    forward_compile_s: Interval | None = None
    """What XLA needs to compile the forward pass as a program of its own, as validation is; None:
    not asked for."""
    exposed_s: float = 0.0
    """What the exchange of gradients adds to the step; ``terms_s`` has all of it."""
    efficiency_ratio: Interval | None = None
    """The efficiency of the exchange: the step without it over the step; None where nothing is
    exchanged."""
    energy_kwh_per_epoch: Interval | None = None
    """The energy of all replicas; None where the length of the data is not known."""
    warnings: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    layers: tuple[LayerTime, ...] = ()
    roofline: tuple[RooflinePoint, ...] = ()
    largest_buffers: tuple[HeldBuffer, ...] = ()
    """Ten at most, largest first."""
    live_curve_bytes: tuple[tuple[float, float], ...] = ()
    """(share of the step 0-1, bytes of the program's buffers alive), in order of the schedule."""
    class_s: dict[str, float] = field(default_factory=dict)
    """Seconds by class of kernel (convolution, gemm, loop, reduce, ...)."""
    explanation: Explanation | None = None
    """The kernels behind ``step_s`` with their formulas; None where it was not asked for."""
