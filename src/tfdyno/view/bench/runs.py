"""The runs of one or two measurements, named and coloured, and the axis that their steps share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from tfdyno.core.measure.measurement import BenchRun
from tfdyno.words.base.amounts import step_unit
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.measure.measurement_document import MeasurementReport

_LEAST_SPAN_RATIO = 0.04
_TAIL_SHARE = 0.02
_LEFT_OUT_COLOUR = "c5"
_COLOURS = {"": "c1", "A": "c1", "B": "c3"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRun:
    """A run as figures show it."""

    name: str
    """``run 1``, ``A 1``."""
    short_name: str
    """``1``, ``A 1``."""
    colour: str
    """CSS variable."""
    run: BenchRun
    median_s: float
    start: int
    """Index of the first sample that counts."""
    counts: bool
    """Whether the run is judged: it found its steady state, or no run of its side did."""

    @property
    def steady(self) -> bool:
        """Whether a steady state was found."""
        return self.run.steady_from < len(self.run.samples_s)

    @property
    def left_out_s(self) -> tuple[float, ...]:
        """Samples of the warm-up, and those that hold more than steps."""
        gone = set(self.run.excluded) | set(range(self.start))
        return tuple(value for at, value in enumerate(self.run.samples_s) if at in gone)

    @property
    def steady_began_s(self) -> float:
        """When the part that counts began, since the start of the child."""
        run = self.run
        lengths_s = [s * n for s, n in zip(run.samples_s, run.steps_per_sample, strict=True)]
        before_s = run.import_s + run.build_s + run.first_step_s
        return before_s + math.fsum(lengths_s[: self.start])

    @property
    def ended_s(self) -> float:
        """When its last sample ended, since the start of the child."""
        run = self.run
        pairs = zip(run.samples_s[self.start :], run.steps_per_sample[self.start :], strict=True)
        return self.steady_began_s + math.fsum(s * n for s, n in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAxis:
    """A linear axis of step times; what lies outside sticks to its ends."""

    low_s: float
    high_s: float
    unit: str
    unit_s: float

    def share(self, value_s: float) -> float:
        """Place of a step time between the ends, 0–1."""
        return min(1.0, max(0.0, (value_s - self.low_s) / (self.high_s - self.low_s)))

    def ticks(self, most: int) -> tuple[tuple[float, str], ...]:
        """Return at most ``most`` round places with their numbers in ``unit``."""
        marks = round_ticks(self.low_s / self.unit_s, self.high_s / self.unit_s, most)
        return tuple((mark * self.unit_s, f"{mark:,.10g}") for mark in marks)

    def words(self, value_s: float) -> str:
        """Return a step time with its unit, as fine as the axis is: ``52.14 ms``."""
        span = (self.high_s - self.low_s) / self.unit_s
        decimals = min(6, max(0, 2 - math.floor(math.log10(span))))
        return f"{value_s / self.unit_s:,.{decimals}f} {self.unit}"


def sides(told: Sequence[MeasurementReport]) -> tuple[str, ...]:
    """Call two measurements ``A`` and ``B``, one nothing."""
    return ("A", "B") if len(told) == 2 else ("",)


def shown_runs(told: Sequence[MeasurementReport]) -> tuple[ShownRun, ...]:
    """List all runs, those of A before those of B."""
    return tuple(
        shown for side, one in zip(sides(told), told, strict=True) for shown in _of(side, one)
    )


def _of(side: str, told: MeasurementReport) -> list[ShownRun]:
    runs = told.measurement.runs
    steady = [run.steady_from < len(run.samples_s) for run in runs]
    found = []
    for at, (run, median_s) in enumerate(zip(runs, told.medians_s, strict=True)):
        counts = steady[at] or not any(steady)
        found.append(
            ShownRun(
                name=f"{side} {at + 1}" if side else say("run {number}", number=at + 1),
                short_name=f"{side} {at + 1}".strip(),
                colour=_COLOURS[side] if counts else _LEFT_OUT_COLOUR,
                run=run,
                median_s=median_s,
                start=_start(run),
                counts=counts,
            )
        )
    return found


def step_axis(told: Sequence[MeasurementReport]) -> StepAxis:
    """Return the axis that holds nearly all steady samples, and all medians and intervals.

    Up to 2 % of the samples may lie beyond its upper end; it spans 4 % at least, so that a calm
    run looks calm.
    """
    samples_s = sorted(s for one in told for run in one.measurement.runs for s in run.steady_s)
    kept = samples_s[: max(1, math.ceil(len(samples_s) * (1.0 - _TAIL_SHARE)))]
    marks = [value for one in told for value in one.medians_s]
    marks += [value for one in told for value in one.summary.interval_s]
    low_s, high_s = min(kept + marks), max(kept + marks)
    middle_s = (low_s + high_s) / 2
    span_s = max(high_s - low_s, _LEAST_SPAN_RATIO * middle_s)
    unit_s, unit = step_unit(told[0].summary.median_s)
    return StepAxis(low_s=max(0.0, middle_s - 0.54 * span_s), high_s=middle_s + 0.54 * span_s,
                    unit=unit, unit_s=unit_s)  # fmt: skip


def round_ticks(low: float, high: float, most: int) -> tuple[float, ...]:
    """Mark ``low`` to ``high`` at multiples of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(m * power for m in (1, 2, 5, 10, 20) if (high - low) / (m * power) <= most)
    places = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return tuple(float(f"{place * step:.12g}") for place in places)


def steps_upto(run: BenchRun) -> tuple[int, ...]:
    """Return steps done at the end of each sample."""
    return tuple(accumulate(run.steps_per_sample))


def _start(run: BenchRun) -> int:
    count = len(run.samples_s)
    return run.steady_from if run.steady_from < count else count // 2
