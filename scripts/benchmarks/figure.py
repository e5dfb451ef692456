"""One measured number."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One row: a number in the unit of its name's end, or the reason why there is none."""

    group: str
    name: str
    unit: str
    """ms, s, MB, MB/s or times."""
    value: float | None
    target: float | None = None
    """The most that is accepted, in the same unit; of a speed (MB/s) the least."""
    runs: int = 1
    note: str = ""
    former: float | None = None
    """The same of a former version, measured in turns."""

    @property
    def is_met(self) -> bool | None:
        """Whether the target is reached; None without a target or without a number."""
        if self.target is None or self.value is None:
            return None
        if self.unit.endswith("/s"):
            return self.value >= self.target
        return self.value <= self.target
