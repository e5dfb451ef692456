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


def departure(option: Option, base: Option) -> int:
    """Return how far what is trained departs from what the script trains; 0: it learns the same.

    In the order in which they are tried: adapters in place of all weights (1), the rest of the
    weights in 8 bits (2) or in 4 (3), another optimizer (4), shorter samples (5).
    """
    own, one = base.fine_tune, option.fine_tune
    if own and one and one != own:
        if one.sequence_length != own.sequence_length:
            return 5
        if one.quantize != own.quantize:
            return 3 if one.quantize == "int4" else 2
        return 1
    return 4 if option.optimizer else 0


def undominated(options: Sequence[Option]) -> tuple[Option, ...]:
    """Return those that fit and that no other fitting one beats, by best figures, fastest first.

    One beats another when it takes no more time per update and no more memory, and less of one.
    One that learns differently beats none that departs less from what the script trains.

    Args:
        options: The script as it is first.
    """
    ways = {id(one): departure(one, options[0]) for one in options}
    found: list[Option] = []
    for way in sorted(set(ways.values())):
        near = [one for one in options if one.fits and ways[id(one)] <= way]
        found += (one for one in _front(near) if ways[id(one)] == way)
    return tuple(sorted(found, key=lambda one: one.update_s.best))


def _front(options: Sequence[Option]) -> list[Option]:
    points = [(one.update_s.best, one.device_memory_bytes.best) for one in options]
    return [options[index] for index in pareto_front(points)]


def chosen_of(options: Sequence[Option], least_gain_ratio: float) -> Option | None:
    """Return the fastest that fits, where every change has to pay (``preferred``).

    What learns differently comes only where nothing fits that departs less (``departure``).

    Args:
        options: The script as it is first.
        least_gain_ratio: What a change has to gain.

    Returns:
        None where nothing fits.
    """
    ways = [departure(one, options[0]) for one in options]
    for way in sorted(set(ways)):
        alike = [one for one, own in zip(options, ways, strict=True) if own == way]
        if found := preferred(alike, least_gain_ratio):
            return found
    return None


def safe_of(options: Sequence[Option], chosen: Option) -> Option | None:
    """Return the fastest whose whole range fits and that learns as the chosen one.

    None where the chosen one is certain: by its range, or by a compile at its own batch.
    """
    if chosen.fits_surely or chosen.verified:
        return None
    learns = departure(chosen, options[0])
    sure = (one for one in options if one.fits_surely and departure(one, options[0]) == learns)
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
