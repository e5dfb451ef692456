"""Parameters of the time and memory models, as ``catalog/data/*_model.toml`` hold them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


class Constants(Protocol):
    """Anything that gives a global constant by name: a ``TimeModel``, or a dictionary in a fit."""

    def __getitem__(self, name: str, /) -> float:
        """The value of a constant; ``KeyError`` for an unknown name."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeModel:
    """All constants by name, and the log half-widths of the intervals by bucket."""

    version: str
    parameters: dict[str, Parameter]
    interval_log_half_width: dict[str, float]
    """Bucket (``cnn/train/xla``, ``default``) -> half-width of the 90 % interval in log(time)."""
    sustained_clock: dict[str, float]
    """Slug -> share of the boost clock that a card holds under load; 1 for all others."""
    values: dict[str, float] = field(init=False, repr=False)
    """Name -> value: what the arithmetic asks for."""

    def __post_init__(self) -> None:
        """Index the values once: the arithmetic asks for them thousands of times."""
        object.__setattr__(self, "values", {p.name: p.value for p in self.parameters.values()})

    def __getitem__(self, name: str, /) -> float:
        """The value of a constant; ``KeyError`` for an unknown name."""
        return self.values[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryModel:
    """Constants that turn a buffer plan into what a card must hold, with ranges and sources."""

    version: str
    parameters: dict[str, Parameter]

    def __getitem__(self, name: str, /) -> float:
        """The best value of a constant; ``KeyError`` for an unknown name."""
        return self.parameters[name].value
