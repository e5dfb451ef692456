"""The child that lays out the memory of a traced step."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tfdyno.core.choose.memory_map import MemoryMap
from tfdyno.core.choose.workload import Mode, TensorSpec
from tfdyno.core.messages.child import Child


@dataclass(frozen=True, slots=True, kw_only=True)
class MapMemory:
    """A traced step whose memory is laid out at one batch."""

    tensors: tuple[TensorSpec, ...]
    mode: Mode
    traced_batch_size: int
    marker: int
    batch_size: int
    """That is asked about."""
    execution: Literal["xla", "graph"]
    widen: bool
    """Whether the card has no bfloat16."""
    keeps: bool
    """Whether XLA keeps there what is dear to compute again."""
    pool_bytes: float
    """What TensorFlow's allocator has to give."""
    stablehlo: Path


MEMORY_MAP = Child(module="tfdyno.runtime.trace.memory_map", request=MapMemory, result=MemoryMap)
