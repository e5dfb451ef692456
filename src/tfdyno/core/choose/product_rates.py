"""What measured matrix products say of cards, as ``catalog/data/product_rates.toml`` holds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ProductUnit = Literal["half", "tf32", "fp8", "cuda", "attention"]
"""What multiplies: tensor cores in 16 bits, in TF32 or in 8 bits, or the CUDA cores; or fused
attention, which multiplies in 16 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductLaw:
    """How tiles fill a card; the same for all cards and types."""

    tile: int
    """Rows and columns of the result that one block of threads computes."""
    prologue: int
    """Multiply-adds along k whose time a tile takes beside its own."""
    lone_tiles: float
    """Tiles per SM whose time even an empty card takes."""
    split_s: float
    """What adding up the parts of a product that is split along k takes."""
    exponent: float
    """How arithmetic and memory overlap: 1 not at all, infinity entirely."""
    source: str

    def __post_init__(self) -> None:
        """Refuse constants with which no product takes a finite time."""
        if min(self.tile, self.lone_tiles) <= 0 or min(self.prologue, self.split_s) < 0:
            raise ValueError(f"need a tile above 0 and no time below 0, got {self}")
        if self.exponent < 1:
            raise ValueError(f"exponent: need at least 1, got {self.exponent}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionLaw:
    """How blocks of fused attention fill a card, beside the law of products."""

    block: int
    """Queries of one head that one block of threads meets with all keys."""
    exp_per_clock: float
    """Exponentials of one SM, which take turns with the products."""
    source: str

    def __post_init__(self) -> None:
        """Refuse constants with which no attention takes a finite time."""
        if min(self.block, self.exp_per_clock) <= 0:
            raise ValueError(f"need a block and exponentials above 0, got {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductRate:
    """What one kind of unit reaches on the cards that share a row of ``sm_rates.csv``."""

    unit: ProductUnit
    cards: tuple[str, ...]
    """``compute capability variant`` as in ``sm_rates.csv``; none: all that no other row names."""
    measured: bool
    """Whether products of such a card on this unit were measured."""
    floor_s: float
    """What every product takes on the GPU, however small; launching from the host not counted."""
    peak_ratio: float
    """The share of the unit's dense peak that large products reach."""
    bandwidth_ratio: float
    """The share of the memory bandwidth that products reach which wait for it."""
    median_error_ratio: float
    """Median error of products, or of cards, that the constants have not seen."""
    p90_error_ratio: float
    """The same: nine of ten err less."""
    source: str

    def __post_init__(self) -> None:
        """Refuse rates that no card can reach."""
        if self.floor_s < 0 or not 0 < self.peak_ratio <= 1 or not 0 < self.bandwidth_ratio <= 1:
            raise ValueError(f"need a floor of 0 or more and shares above 0, at most 1: {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductRates:
    """The laws and every row; one row of each unit names no card and serves the rest."""

    law: ProductLaw
    attention: AttentionLaw
    rates: tuple[ProductRate, ...]

    def __post_init__(self) -> None:
        """Refuse a table in which a card has two rows or may have none."""
        common = [rate.unit for rate in self.rates if not rate.cards]
        named = [(rate.unit, card) for rate in self.rates for card in rate.cards]
        if sorted(common) != ["attention", "cuda", "fp8", "half", "tf32"]:
            raise ValueError(f"need one row without cards for every unit, got {sorted(common)}")
        if len(set(named)) != len(named):
            raise ValueError("a card is in two rows of one unit")
