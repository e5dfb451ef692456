"""Children that compile a traced step for a GPU that is not there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tfdyno.core.choose.program import Program
from tfdyno.core.choose.sharding import ShardingKind
from tfdyno.core.choose.workload import Mode, TensorSpec
from tfdyno.core.messages.child import Child


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What the compiler is told of one GPU: facts of the catalogue."""

    compute_capability: str
    sm_count: int
    cuda_cores: int
    """CUDA cores of a streaming multiprocessor, as the next three."""
    max_threads: int
    registers: int
    shared_memory_bytes: int
    shared_memory_per_block_bytes: int
    memory_bytes: int
    """XLA recomputes activations rather than pass it."""
    memory_bytes_per_s: float
    l2_bytes: float
    clock_hz: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileStep:
    """A traced step to compile for one card."""

    stablehlo: Path
    target: Target
    title: str
    family: str
    batch_size: int
    marker: int
    """0: the numbers hold at the batch only."""
    trace_sha256: str
    tensors: tuple[TensorSpec, ...]
    mode: Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCompiled:
    """The program; None where a tensor passes 32-bit offsets."""

    program: Program | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileSharded:
    """A traced step to compile for several cards that share it."""

    stablehlo: Path
    target: Target
    title: str
    tensors: tuple[TensorSpec, ...]
    kind: ShardingKind
    cards: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardedPlan:
    """What XLA's plan holds on each card."""

    held_bytes: float
    argument_bytes: float
    seconds_s: float


COMPILE = Child(module="tfdyno.runtime.compile.child", request=CompileStep, result=StepCompiled)
COMPILE_SHARDED = Child(
    module="tfdyno.runtime.compile.sharded", request=CompileSharded, result=ShardedPlan
)
