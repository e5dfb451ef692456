"""A measurement in a few numbers: the median step with its interval, rates, memory, power."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.measure.measurement import Summary
from tfdyno.model.measure.instability import instabilities
from tfdyno.model.measure.statistics import bootstrap_median, mean, median, trimmed_mean
from tfdyno.model.measure.steady_part import judged_runs, steady_part, steady_points

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfdyno.core.measure.measurement import BenchRun, CardTelemetry, Measurement


def summary(measurement: Measurement) -> Summary:
    """Summarise the runs that found their steady state; all of them where none did.

    The step is the median over runs of the median of a run, in which a sample counts with the
    steps it holds. A step takes one batch of every replica, whether or not gradients are
    accumulated over several, so the throughput is

        batch_size * replica_count / median_s

    Power is the mean over the points of telemetry in the steady part of the sum over the cards;
    energy per step is power times the median step.

    Raises:
        ValueError: No run has a sample.
    """
    runs = judged_runs(measurement)
    if not runs:
        raise ValueError("no run has a sample")
    parts = [steady_part(run) for run in runs]
    median_s = median([part.median_s for part in parts])
    samples_s = [sample for part in parts for sample in part.samples_s]
    steps = [float(count) for part in parts for count in part.steps]
    power_w = _power_w(runs)
    return Summary(
        median_s=median_s,
        trimmed_mean_s=trimmed_mean(samples_s, steps),
        interval_s=bootstrap_median(
            [part.samples_s for part in parts], [part.steps for part in parts]
        ),
        sample_count=len(samples_s),
        run_count=len(runs),
        throughput_per_s=measurement.task.samples_per_step / median_s,
        first_step_s=median([run.first_step_s for run in runs]),
        peak_memory_bytes=max(run.peak_memory_bytes for run in measurement.runs),
        utilisation_ratio=_utilisation_ratio(runs),
        power_w=power_w,
        energy_j_per_step=None if power_w is None else power_w * median_s,
        instabilities=instabilities(measurement),
    )


def _utilisation_ratio(runs: Sequence[BenchRun]) -> float | None:
    """Return mean over cards and points."""
    found = _at_points(runs, lambda card: card.utilisation_ratio)
    return mean([mean(cards) for cards in found]) if found else None


def _power_w(runs: Sequence[BenchRun]) -> float | None:
    found = _at_points(runs, lambda card: card.power_w)
    return mean([sum(cards) for cards in found]) if found else None


def _at_points(
    runs: Sequence[BenchRun], read: Callable[[CardTelemetry], Sequence[float]]
) -> list[list[float]]:
    """Return what the cards that tell of it read at every point of every steady part.

    A point below 0 could not be read and is left out.
    """
    found = []
    for run in runs:
        told = [values for card in run.telemetry.cards if (values := read(card))]
        points = steady_points(run) if told else ()
        found += [[values[at] for values in told] for at in points]
    return [point for point in found if min(point) >= 0]
