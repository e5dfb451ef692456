"""Children that trace a step and count its operations."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tfdyno.core.base.errors import Failure
from tfdyno.core.choose.program import TODAY, Lowering, Program
from tfdyno.core.choose.workload import Trace, Workload
from tfdyno.core.messages.child import Child

FUSES, FUSES_WIDE = 8.0, 9.0
"""Compute capabilities from which on cuDNN fuses attention, and that of wider heads than
``NARROW`` (JAX 0.10, ``check_is_flash_attention``)."""
NARROW = 128
"""Width of a head that every card takes whose cuDNN fuses attention."""
FUSED_STEPS = ("fused_attention", "wide_attention")
"""Fields of ``QuickPrograms`` whose steps are written beside the plain one, as ``NAME.mlirbc``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceStep:
    """One workload to trace by one path."""

    workload: Workload
    batch_size: int | None = None
    """None: the marker batch."""
    path: Literal["jax", "tensorflow"] = "jax"
    path_reason: str
    stablehlo: Path
    """File to write on the JAX path."""
    hlo: Path
    """File to write on TensorFlow's."""
    count: bool = False
    """Whether to make the programs here, which the user's own interpreter need not be able to."""
    limit_s: float = 600.0
    lowering: Lowering = TODAY
    """Whose program the quick ones follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuickPrograms:
    """A traced step in each way to run it.

    They serve every card but those without bfloat16: where the step has any, these get the widened
    ones, the same step in float32.
    """

    program: Program
    """As XLA runs it."""
    widened: Program | None = None
    per_op: Program
    """As a framework does that runs one operation after another and has one for every layer
    (Keras 2, PyTorch)."""
    per_op_widened: Program | None = None
    per_primitive: Program | None = None
    """As Keras 3 does on TensorFlow, whose layers are made of plain operations; None for software
    before it."""
    per_primitive_widened: Program | None = None
    fused_attention: Program | None = None
    """As XLA runs it under JAX on cards where cuDNN fuses attention; None: nothing is fused."""
    wide_attention: Program | None = None
    """The same for cards whose cuDNN takes wider heads; None: as ``fused_attention``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTraced:
    """What tracing by one path came to."""

    trace: Trace | Failure
    """On TensorFlow's path without the digest of the StableHLO, which is made of its HLO."""
    files: dict[str, str] = field(default_factory=dict)
    """Path and SHA-256 of the modules and records of packages that the trace depends on."""
    read: tuple[str, ...] = ()
    """Other files and folders that the user's code read."""
    variables: tuple[str, ...] = ()
    """Environment variables that it asked for."""
    programs: QuickPrograms | None = None
    """Where they were to be counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountStep:
    """A step that another interpreter traced."""

    trace: Trace
    stablehlo: Path
    lowering: Lowering = TODAY


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeStep:
    """A step that TensorFlow lowered."""

    trace: Trace
    """But for its digest."""
    hlo: Path
    stablehlo: Path
    """File to write."""
    lowering: Lowering = TODAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Bridged:
    """The same step as StableHLO."""

    trace: Trace
    programs: QuickPrograms


TRACE = Child(module="tfdyno.runtime.trace.child", request=TraceStep, result=StepTraced)
COUNT = Child(module="tfdyno.runtime.trace.count", request=CountStep, result=QuickPrograms)
BRIDGE = Child(module="tfdyno.runtime.trace.bridge", request=BridgeStep, result=Bridged)
