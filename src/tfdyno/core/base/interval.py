"""Numbers that know their range, and numbers that know how they grow with the batch."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from tfdyno.core.base.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Low, best and high of one quantity, true nine times in ten; its field names the unit."""

    low: float
    best: float
    high: float

    def __post_init__(self) -> None:
        """Refuse an interval that is not ordered."""
        if not self.low <= self.best <= self.high:
            raise ValueError(f"need low <= best <= high, got {self.low}, {self.best}, {self.high}")

    def times(self, factor: float) -> Interval:
        """Return the interval of the quantity multiplied by ``factor`` (at least 0)."""
        return Interval(low=self.low * factor, best=self.best * factor, high=self.high * factor)

    def narrowed(self, ratio: float) -> Interval:
        """Narrow the width in the logarithm to this share; positive quantities only."""
        return Interval(
            low=self.best * (self.low / self.best) ** ratio,
            best=self.best,
            high=self.best * (self.high / self.best) ** ratio,
        )

    def each(self, other: Interval, how: Callable[[float, float], float]) -> Interval:
        """Combine end by end with another quantity that may be off the same way."""
        return Interval(
            low=how(self.low, other.low),
            best=how(self.best, other.best),
            high=how(self.high, other.high),
        )

    def together(self, other: Interval) -> Interval:
        """Add another quantity that may be off the same way: low to low, high to high."""
        return self.each(other, operator.add)

    def under(self, amount: float) -> Interval:
        """Return the interval of ``amount`` divided by the quantity, which is above 0."""
        return Interval(low=amount / self.high, best=amount / self.best, high=amount / self.low)

    def plus(self, amount: float) -> Interval:
        """Return the interval of the quantity with a certain ``amount`` added."""
        return Interval(low=self.low + amount, best=self.best + amount, high=self.high + amount)


NOTHING = Interval(low=0.0, best=0.0, high=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled:
    """A quantity that is affine in the batch: ``fixed + per_sample * batch_size``."""

    fixed: float = 0.0
    per_sample: float = 0.0

    def at(self, batch_size: float) -> float:
        """Return the quantity at a batch of ``batch_size`` samples."""
        return self.fixed + self.per_sample * batch_size

    def times(self, factor: float) -> Scaled:
        """Return the quantity multiplied by ``factor``."""
        return Scaled(fixed=self.fixed * factor, per_sample=self.per_sample * factor)

    def __add__(self, other: Scaled) -> Scaled:
        """Return the sum of two affine quantities."""
        return Scaled(fixed=self.fixed + other.fixed, per_sample=self.per_sample + other.per_sample)
