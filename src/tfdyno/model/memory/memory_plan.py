"""Which of many ways to run a workload to take where memory is short, at what sure cost."""

from __future__ import annotations

from math import exp, hypot, log
from typing import TYPE_CHECKING

from tfdyno.core.base.interval import Interval
from tfdyno.model.choose.pareto import pareto_front
from tfdyno.model.choose.recipe_options import preferred

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfdyno.core.choose.auto_recipe import Option

_LEAST_LEFT = 0.05
"""Share of a step that no change takes away, however wrong its estimate."""


def undominated(options: Sequence[Option]) -> tuple[Option, ...]:
    """Return those that fit and that no other fitting one beats, by best figures, fastest first.

    One beats another when it takes no more time per update and no more memory, and less of one.
    One that learns differently, by another optimizer, beats none with the script's own.
    """
    fitting = [one for one in options if one.fits]
    alike = _front([one for one in fitting if not one.optimizer])
    other = (one for one in _front(fitting) if one.optimizer)
    return tuple(sorted((*alike, *other), key=lambda one: one.update_s.best))


def _front(options: Sequence[Option]) -> list[Option]:
    points = [(one.update_s.best, one.device_memory_bytes.best) for one in options]
    return [options[index] for index in pareto_front(points)]


def chosen_of(options: Sequence[Option], least_gain_ratio: float) -> Option | None:
    """Return the fastest that fits, where every change has to pay (``preferred``).

    What learns differently, by another optimizer, comes only where nothing else fits.

    Returns:
        None where nothing fits.
    """
    alike = [one for one in options if not one.optimizer]
    return preferred(alike, least_gain_ratio) or preferred(options, least_gain_ratio)


def safe_of(options: Sequence[Option], chosen: Option) -> Option | None:
    """Return the fastest whose whole range fits and that learns as the chosen one.

    None where the chosen one is certain: by its range, or by a compile at its own batch.
    """
    if chosen.fits_surely or chosen.verified:
        return None
    sure = (one for one in options if one.fits_surely and one.optimizer == chosen.optimizer)
    return min(sure, key=lambda one: one.update_s.best, default=None)


def closest_of(options: Iterable[Option]) -> Option:
    """Return the one that needs the least of its card's memory; the faster of equals."""
    return min(
        options,
        key=lambda one: (
            one.device_memory_bytes.best / one.usable_memory_bytes,
            one.update_s.best,
        ),
    )


def time_ratio(
    option: Option,
    base: Option,
    *,
    measured_log_widths: Iterable[float] = (),
    computed_ratios: Iterable[float] = (),
) -> Interval:
    """Time per sample of an option over that of the base, which sees the same samples an update.

    What two estimates of one model on one card have in common cancels in their ratio. What is left
    is, for a change that was measured, a width in the logarithm; a change that was not measured, as
    computing again, is taken to be off by as much as a step's time is:

        ratio = 1 + d, with d between d / k and d * k, where k = high / best of the base's time

    The widths of independent changes add by the root of the sum of their squares.

    Args:
        option: What is asked about.
        base: What it is compared with.
        measured_log_widths: Of the changes between the two that were measured.
        computed_ratios: Ratios of the times with and without each change that was not.
    """
    best = option.update_s.best / base.update_s.best
    factor = base.update_s.high / base.update_s.best
    computed = (change_log_width(ratio, factor) for ratio in computed_ratios)
    width = hypot(*measured_log_widths, *computed)
    return Interval(low=best * exp(-width), best=best, high=best * exp(width))


def change_log_width(ratio: float, factor: float) -> float:
    """Return how far off, in the log, a ratio is whose difference from 1 is off by ``factor``.

    Args:
        ratio: Above 0.
        factor: At least 1.
    """
    ends = (1.0 + (ratio - 1.0) * factor, 1.0 + (ratio - 1.0) / factor)
    return max(abs(log(max(end, _LEAST_LEFT) / ratio)) for end in ends)
