"""The steady part of a run: its samples, its median step, its points of telemetry."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno.core.base.dataclass import dataclass
from tfdyno.model.measure.statistics import trimmed_mean, weighted_median

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.measure.measurement import BenchRun, Measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyPart:
    """Samples of the steady state; of a run without one, the second half of all samples."""

    samples_s: tuple[float, ...]
    """Seconds per step."""
    steps: tuple[int, ...]
    """Steps that each sample is the mean over: its weight."""

    @property
    def median_s(self) -> float:
        """The median step: every sample counts with its steps; ``ValueError`` without samples."""
        return weighted_median(self.samples_s, self.steps)

    @property
    def trimmed_mean_s(self) -> float:
        """The mean step without a tenth of the samples at each end; ``ValueError`` as above."""
        return trimmed_mean(self.samples_s, self.steps)


def is_steady(run: BenchRun) -> bool:
    """Return whether the run found its steady state."""
    return run.steady_from < len(run.samples_s)


def steady_part(run: BenchRun) -> SteadyPart:
    """Return the samples that a run is judged by, without the excluded ones."""
    return SteadyPart(
        samples_s=run.steady_s,
        steps=tuple(run.steps_per_sample[place] for place in run.steady_places),
    )


def beside_s(run: BenchRun) -> float:
    """Return the trimmed mean of the computation beside the steady steps, in s; 0.0: none."""
    start = run.steady_from if is_steady(run) else len(run.samples_s) // 2
    pairs = zip(run.beside_places, run.beside_s, strict=True)
    inside = [seconds for place, seconds in pairs if place > start and seconds > 0]
    return trimmed_mean(inside) if inside else 0.0


def judged_runs(measurement: Measurement) -> tuple[BenchRun, ...]:
    """Return the runs that count: those with a steady state; all with samples where none has."""
    filled = [run for run in measurement.runs if steady_part(run).samples_s]
    steady = [run for run in filled if is_steady(run)]
    return tuple(steady or filled)


def run_medians_s(runs: Sequence[BenchRun]) -> tuple[float, ...]:
    """Return median step of each run, in seconds."""
    return tuple(steady_part(run).median_s for run in runs)


def steady_points(run: BenchRun) -> range:
    """Return indices of the telemetry that lie in the steady part; empty where it is too short.

    The steady part begins after import, build, first step and the samples before it. What was
    computed beside the steps is in no sample: on CPUs the end of the part may be missing.
    """
    lengths_s = [s * n for s, n in zip(run.samples_s, run.steps_per_sample, strict=True)]
    start = run.steady_from if is_steady(run) else len(lengths_s) // 2
    began_s = run.import_s + run.build_s + run.first_step_s
    low_s = began_s + math.fsum(lengths_s[:start])
    high_s = began_s + math.fsum(lengths_s)
    inside = [index for index, at_s in enumerate(run.telemetry.at_s) if low_s <= at_s <= high_s]
    return range(inside[0], inside[-1] + 1) if inside else range(0)
