"""The step as a GPU will run it: kernels and the buffer plan, whichever route made them."""

from __future__ import annotations

from dataclasses import field
from math import inf, prod
from typing import Literal

from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.interval import Scaled

KernelKind = Literal[
    "convolution",  # library convolution; dims n, cin, cout, groups, window, stride, in, out
    "gemm",  # library matrix product; dims m, n, k, batch
    "loop",  # fused elementwise
    "reduce",  # fused reduction, normalisation statistics, softmax
    "transpose",
    "window",  # pooling (reduce_window) and its backward pass (select_and_scatter)
    "gather",
    "scatter",
    "copy",
    "sort",
    "scan",  # cumulative sums and other sequential windows
    "random",
    "collective",
    "attention",  # fused; dims batch, heads, key_heads, head_dim, queries, keys, causal, products
    "recurrent",  # time steps of a recurrent layer in cuDNN; dims steps, n, hidden, gates
    "other",
]
Direction = Literal["", "forward", "input_gradient", "weight_gradient"]
Lowering = Literal["before", "jax", "tensorflow"]
"""Whose program a quick one follows.

``before``: XLA up to 2024, which computes again whatever saves bytes. ``jax``: XLA of today, which
computes no expensive function twice, under JAX. ``tensorflow``: the same under TensorFlow, whose
random bits are Philox's, written by a kernel of their own.
"""
TODAY: Lowering = "tensorflow"
Phase = Literal["forward", "backward", "recompute", "update"]
"""``recompute``: of the forward pass, but done once more for the backward pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One launch (``count`` launches when identical ones were merged)."""

    kind: KernelKind
    dtype: str
    """Element type that decides the arithmetic unit, in HLO spelling: f32, f16, bf16, f64, ..."""
    flops: Scaled = field(default_factory=Scaled)
    read_bytes: Scaled = field(default_factory=Scaled)
    write_bytes: Scaled = field(default_factory=Scaled)
    direction: Direction = ""
    phase: Phase = "forward"
    layer: str = ""
    """Layer of the user's model, as the trace names it (``conv2_block1_1_conv``)."""
    name: str = ""
    dims: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Tile-relevant sizes at the program's batch.

    convolution: ``n cin cout groups`` (1-tuples), ``window stride input output`` (spatial; forward
    geometry whatever the direction). gemm: ``m n k batch``. window: ``window stride``. reduce:
    ``inner``, the elements between two that are added up (1: along rows). In a program of primitive
    operations also ``outer summed scattered`` for reduce (see ``per_primitive``), and for what runs
    element by element ``elements`` and ``per_thread``, those of one thread at a time.
    """
    dims_scaled: tuple[str, ...] = ()
    """Names in ``dims`` that grow with the batch."""
    repeats: int = 1
    """Trip count of the loop it stands in (already multiplied into FLOPs, bytes and ``count``)."""
    count: int = 1
    workspace_bytes: Scaled = field(default_factory=Scaled)

    def size(self, name: str, grown: float = 1.0) -> float:
        """Return one of ``dims`` multiplied out, at a batch ``grown`` so much; 1 of none."""
        return float(prod(self.dims.get(name, (1,)))) * (grown if name in self.dims_scaled else 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """One of the largest buffers alive at the peak."""

    name: str
    layer: str
    part: str
    """weights, gradients, optimizer, activations, inputs, workspace."""
    dtype: str
    shape: tuple[int, ...]
    bytes: Scaled


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferPlan:
    """What the step holds in memory, affine in the batch."""

    argument_bytes: Scaled
    output_bytes: Scaled
    aliased_bytes: Scaled
    temporary_bytes: Scaled
    peak_bytes: Scaled
    """Arguments + outputs - aliased + temporaries."""
    parts_bytes: dict[str, Scaled]
    """The peak split into weights, gradients, optimizer, activations, inputs, workspace."""
    largest: tuple[Buffer, ...]
    """Ten at most, largest first."""
    live_curve: tuple[tuple[float, Scaled], ...]
    """(share of the schedule 0-1, live bytes), at most 200 points."""
    envelope: tuple[Scaled, ...] = ()
    """Peaks of the moments that are the highest at some batch; empty: ``peak_bytes`` serves all.

    At a small batch another moment (all gradients alive) can be the peak than at a large one.
    """

    envelope_parts: tuple[dict[str, Scaled], ...] = ()
    """Each moment of ``envelope`` split as ``parts_bytes``; empty: not known."""

    reordered: tuple[Scaled, ...] = ()
    """The same of the order in which XLA's list scheduling would hold least; empty: not looked for.

    A step that computes values again is planned in that order: to see what computing them again
    saves, it is compared with this."""

    late: tuple[Scaled, ...] = ()
    """The same where weights are made ready right before they are read, as XLA may do; empty: that
    holds no less, or it was not looked for."""

    kept: BufferPlan | None = None
    """The plan where XLA keeps what is dear to compute again, as on an H200; None: not looked for.
    Whether it does hangs on the card (``keeps_dear`` in ``catalog.families``)."""

    def reordering_saves_bytes(self, batch_size: float) -> float:
        """Return the bytes that the other order saves; 0.0: none, or it was not looked for."""
        other = max((moment.at(batch_size) for moment in self.reordered), default=None)
        return 0.0 if other is None else max(0.0, self.peak_at(batch_size) - other)

    def peak_at(self, batch_size: float) -> float:
        """Return bytes held at the worst moment of a step with this batch."""
        return max(moment.at(batch_size) for moment in (self.envelope or (self.peak_bytes,)))

    def least_at(self, batch_size: float) -> float:
        """Return ``peak_at``, or what the order holds that makes weights ready late."""
        late = max((moment.at(batch_size) for moment in self.late), default=inf)
        return min(late, self.peak_at(batch_size))

    def parts_at(self, batch_size: float) -> dict[str, float]:
        """Split ``peak_at`` into parts, in bytes.

        Where the parts of other moments are not known, what one holds more than the one of
        ``parts_bytes`` counts as gradients: at a small batch they make the peak.
        """
        if self.envelope_parts:
            moments = zip(self.envelope, self.envelope_parts, strict=True)
            _, held = max(moments, key=lambda moment: moment[0].at(batch_size))
            return {part: amount.at(batch_size) for part, amount in held.items()}
        parts = {part: amount.at(batch_size) for part, amount in self.parts_bytes.items()}
        more = self.peak_at(batch_size) - self.peak_bytes.at(batch_size)
        if more > 0.0:
            parts["gradients"] = parts.get("gradients", 0.0) + more
        return parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Rematerialisation:
    """XLA computes values again, instead of keeping them, to hold a step in less memory."""

    need_bytes: float
    """Peak of the buffer plan if everything were kept."""
    held_bytes: float
    """Peak of the plan as compiled."""
    limit_bytes: float
    """What XLA aims at: about three quarters of the card, so it starts before the card is full."""
    limit_met: bool
    """Whether it got there; if not, the step may still fit the card."""
    instruction_count: int
    """Computed again; each costs time that the same step does not take where there is room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The kernels in order and the buffer plan, with how they were made."""

    trace_sha256: str
    route: Literal["quick", "exact"]
    family: str
    """GPU family it was compiled for (``8.x``); empty for the quick route, which serves all."""
    batch_size: int
    marker: int
    """0: the numbers hold at ``batch_size`` only."""
    kernels: tuple[Kernel, ...]
    buffers: BufferPlan
    seconds_s: float
    versions: dict[str, str]
    notes: tuple[str, ...] = ()
    rematerialisation: Rematerialisation | None = None
    """Only of a program that was compiled for the memory of a card; None: everything is kept."""
    lowering: Lowering = "before"
    """Which lowering it has; told by the quick route only."""
