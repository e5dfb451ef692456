"""Parameters of the time and memory models, as ``catalog/data/*_model.toml`` hold them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from tfdyno.core.choose.card_file import CardFile
from tfdyno.core.choose.product_rates import ProductRates

FIT = "tfdyno-truth fit"
"""How the source of a constant begins that was fitted to measurements."""
KERNELS = "kernels"
"""First part of the name of a bucket of intervals that the law of today's software learned."""
BOUND_SHARE = 1e-3
"""A fitted constant counts as at its bound within this share of its range."""


class Constants(Protocol):
    """Anything that gives a global constant by name: a ``TimeModel``, or a dictionary in a fit."""

    def __getitem__(self, name: str, /) -> float:
        """Return the value of a constant; ``KeyError`` for an unknown name."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One global constant of a model with its allowed range and its source."""

    name: str
    value: float
    prior: float
    """Where a fit starts and where it stays when the rows do not identify the constant."""
    low: float
    high: float
    unit: str
    fitted: bool
    source: str

    def __post_init__(self) -> None:
        """Refuse a value outside its own range."""
        if not self.low <= self.value <= self.high:
            raise ValueError(f"{self.name}: need {self.low} <= {self.value} <= {self.high}")

    @property
    def learned(self) -> bool:
        """Whether measurements gave the value: in the fit of all constants or in one of its own."""
        return self.fitted or self.source.startswith(FIT)

    @property
    def identified(self) -> bool:
        """False where a fit ended at an end of the range: then rows do not say how large it is."""
        near = BOUND_SHARE * (self.high - self.low)
        return not self.learned or self.low + near < self.value < self.high - near


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketWidth:
    """How far the measured steps of one kind lay from predictions that had not seen them."""

    log_half_width_ratio: float
    """The half width of the 90 % interval, in log(time), of a step that does not wait for launches.
    """
    groups: int
    """Models on a card that it was learned from."""

    def __post_init__(self) -> None:
        """Refuse a width of nothing, and one that nothing was learned from."""
        if self.log_half_width_ratio <= 0 or self.groups < 1:
            raise ValueError(f"need a width above 0 of 1 group or more, got {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """The sweep of a card behind the constants of a time model."""

    card: CardFile
    words: str
    """One clause that says which sweep it is."""
    log_width_ratio: float
    """Half-width that is left of the range, in log(time)."""
    same_software: bool = True
    """Whether the answer is for the generation of software that was swept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeModel:
    """All constants by name, and the widths of the intervals by bucket."""

    version: str
    parameters: dict[str, Parameter]
    intervals: dict[str, BucketWidth]
    """Bucket (``cnn/train/xla``; ``default``: all measurements together) -> width."""
    sustained_clock: dict[str, float]
    """Slug -> share of the boost clock that a card holds under load; 1 for all others."""
    sustained_clock_source: dict[str, str] = field(default_factory=dict)
    """Slug -> where its share of the boost clock comes from."""
    generation: str = ""
    """The software that the constants are for; empty: those that all share."""
    kernel_executions: frozenset[str] = frozenset()
    """Executions that are priced kernel by kernel (``model.time.kernel_law``)."""
    measured_capabilities: frozenset[str] = frozenset()
    """Compute capabilities of the cards on which such steps were measured."""
    product_rates: ProductRates | None = None
    """What measured products reach: for executions that are priced kernel by kernel."""
    swept: Swept | None = None
    """The one card that it is for; None: it is for all cards as they ship."""
    values: dict[str, float] = field(init=False, repr=False)
    """Name -> value: what the arithmetic asks for."""

    def __post_init__(self) -> None:
        """Index the values once: the arithmetic asks for them thousands of times."""
        object.__setattr__(self, "values", {p.name: p.value for p in self.parameters.values()})

    def __getitem__(self, name: str, /) -> float:
        """Return the value of a constant; ``KeyError`` for an unknown name."""
        return self.values[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryModel:
    """Constants that turn a buffer plan into what a card must hold, with ranges and sources."""

    version: str
    parameters: dict[str, Parameter]
    measured_on: dict[str, str] = field(default_factory=dict)
    """Mode, execution and generation (``train xla 9``) -> card on which predictions were compared
    with what it held."""

    def __getitem__(self, name: str, /) -> float:
        """Return the best value of a constant; ``KeyError`` for an unknown name."""
        return self.parameters[name].value
