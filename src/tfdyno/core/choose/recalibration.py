"""A measured step beside its estimate: what later estimates of the same workload start from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.workload import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What must be the same for one measurement to say something about an estimate."""

    title: str
    """The model's own name."""
    parameter_count: int
    mode: Mode
    policy: str
    """Keras dtype policy."""
    strict: bool
    """Whether float32 was asked for by name: TF32 is then off."""
    execution: Literal["xla", "graph"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """One workload measured and estimated on one card."""

    subject: Subject
    card: str
    """Slug of the catalogue."""
    batch_size: int
    """Samples of each replica."""
    replica_count: int
    measured_s: float
    """Median step."""
    estimated_s: float
    """Best estimate of the same step, without any recalibration."""
    protocol_version: int
    measurement_id: str
    measured_on: str
    """ISO date."""

    @property
    def factor_ratio(self) -> float:
        """Measured over estimated: above 1, the estimate was too fast."""
        return self.measured_s / self.estimated_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalibration:
    """What the anchors of a workload make of its estimates on one card."""

    factor_ratio: float = 1.0
    """That times are multiplied by."""
    anchors: tuple[Anchor, ...] = ()
    """Those it rests on; empty: none applies."""
    own_card: bool = False
    """Whether it was measured on the card itself."""
    width_ratio: float = 1.0
    """What is left of the interval's width in log(time)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A measured step beside its estimate, which no measurement had moved."""

    estimated_s: Interval
    anchor: Anchor
    """Card, measured time and best estimate; what ``--recalibrate`` keeps."""

    @property
    def inside(self) -> bool:
        """Whether the measured time lies in the estimate's interval."""
        return self.estimated_s.low <= self.anchor.measured_s <= self.estimated_s.high
