"""Ways to train a model that one card cannot hold, by formula."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tfdyno.core.base.interval import Interval

ShardingKind = Literal[
    "data parallel", "optimizer state", "all states", "tensor parallel", "pipeline"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardingPlan:
    """One way over so many cards, with time by formula, and memory by formula or by XLA."""

    kind: ShardingKind
    replicas: int
    device_memory_bytes: float
    """The memory on each card."""
    fits: bool
    step_s: Interval
    """The step of the same global batch as one card's."""
    formula: str
    source: str
    memory_by: Literal["formula", "compiler"] = "formula"
    """``compiler``: XLA's plan of the step shared among so many cards, at this very batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharding:
    """Ways over several cards of a kind that one of them does not hold."""

    gpu: str
    batch_size: int
    """The batch of all cards together: what one card was asked to hold."""
    plans: tuple[ShardingPlan, ...]
    """Fewest cards first; empty where no way holds it."""
    most_cards: int
    """That were tried; 1: nothing joins several."""
