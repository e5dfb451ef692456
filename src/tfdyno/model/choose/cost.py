"""Hours, money and energy of a run, from the estimate of one step and the price of an hour."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from tfdyno.core.base.interval import NOTHING, Interval
from tfdyno.core.base.units import HOUR_S
from tfdyno.core.choose.advice import HoursPart
from tfdyno.core.choose.hardware import OWNED, UNKNOWN_PRICE_RANGE
from tfdyno.model.time.energy import JOULES_PER_KWH

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfdyno.core.choose.advice import Assumed, Candidate, HoursKind, Run
    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.hardware import Offer, PriceRange


def steps_of(run: Run, estimate: Estimate) -> int:
    """Count the run's optimizer steps on this many replicas.

    Where the run has so many samples, the steps that see each once; a last, smaller batch is a step
    too. Where it has so many steps, all of them, however much data they see.
    """
    if run.length == "steps":
        return run.steps
    return math.ceil(run.samples / estimate.global_batch_size)


def hours_parts(
    run: Run,
    estimate: Estimate,
    *,
    assumed: Assumed,
    start_h: float = 0.0,
    interruption_ratio: float = 0.0,
) -> tuple[HoursPart, ...]:
    """Return what the wall-clock hours of the run go to; their sum is the whole.

        training = steps * step, of which the time waited for data stands apart
        validation = passes * batches * forward + compile of the forward pass
        checkpoints = bytes of all / speed
        interruptions = ratio * (all of these and the compile in the first step)

    A batch of the validation is that of the step, and takes its forward pass.

    Args:
        run: How many samples there are to see.
        estimate: Of one step, on this card and number of replicas.
        assumed: The speed of a checkpoint.
        start_h: From the order of the machine to the first step; 0.0 where it is there already.
        interruption_ratio: Share of hours lost to interruptions; 0.0 for capacity that stays.
    """
    waiting_ratio = estimate.terms_s.get("input", 0.0) / estimate.step_s.best
    training = estimate.step_s.times(steps_of(run, estimate))
    seconds: dict[HoursKind, Interval] = {
        "steps": training.times(1.0 - waiting_ratio),
        "data": training.times(waiting_ratio),
        "compile": estimate.compile_s,
        "validation": _validation_s(run, estimate),
        "checkpoints": _checkpoints_s(run, assumed),
    }
    seconds["interruptions"] = _sum(seconds.values()).times(interruption_ratio)
    hours = {kind: one.times(1.0 / HOUR_S) for kind, one in seconds.items()}
    hours["start"] = NOTHING.plus(start_h)
    return tuple(HoursPart(kind=kind, hours=one) for kind, one in hours.items() if one.high)


def joined_parts(runs: Iterable[Iterable[HoursPart]]) -> tuple[HoursPart, ...]:
    """Return the parts of several runs, one after the other, as those of one."""
    found: dict[HoursKind, Interval] = {}
    for part in (part for parts in runs for part in parts):
        found[part.kind] = found.get(part.kind, NOTHING).together(part.hours)
    return tuple(HoursPart(kind=kind, hours=hours) for kind, hours in found.items())


def whole_hours(parts: Iterable[HoursPart]) -> Interval:
    """Return the hours of a run from its parts, which may be off the same way."""
    return _sum(part.hours for part in parts)


def run_energy_kwh(run: Run, estimate: Estimate) -> Interval:
    """Return the energy that the GPUs draw in the run, without the host, in kWh."""
    steps = steps_of(run, estimate) + _validation_steps(run, estimate)
    return estimate.energy_j_per_step.times(steps / JOULES_PER_KWH)


def _validation_s(run: Run, estimate: Estimate) -> Interval:
    if not run.validation_passes:
        return NOTHING
    passes = estimate.step_s.times(_validation_steps(run, estimate))
    return passes.together(estimate.forward_compile_s or NOTHING)


def _checkpoints_s(run: Run, assumed: Assumed) -> Interval:
    """Return what checkpoints take: the fewest at the highest speed to the most at the lowest."""
    speed, ratio = assumed.checkpoint_bytes_per_s, assumed.checkpoint_speed_ratio
    return Interval(
        low=run.fewest_checkpoint_bytes / speed * ratio,
        best=run.checkpoint_bytes / speed,
        high=run.checkpoint_bytes / speed / ratio,
    )


def _validation_steps(run: Run, estimate: Estimate) -> float:
    """Return steps of training that take as long as all passes: nothing is exchanged in a pass."""
    batches = math.ceil(run.validation_samples / estimate.global_batch_size)
    alone_ratio = 1.0 - estimate.exposed_s / estimate.step_s.best
    return run.validation_passes * batches * estimate.forward_ratio * alone_ratio


def _sum(parts: Iterable[Interval]) -> Interval:
    return functools.reduce(Interval.together, parts, NOTHING)


def run_cost_usd(
    offer: Offer,
    hours: Interval,
    energy_kwh: Interval,
    *,
    assumed: Assumed,
    price_range: PriceRange = UNKNOWN_PRICE_RANGE,
) -> Interval:
    """Return the run's money: hours at the offer's price, or electricity of an owned card.

        low = fewest hours * lowest price, best = hours * price now, high = most * highest

    Time and price have nothing to do with each other, so this holds at least as often as the hours
    do while the price stays within its range.
    """
    if offer.provider == OWNED:
        return energy_kwh.times(assumed.electricity_usd_per_kwh)
    return with_price_range(hours.times(offer.usd_per_h), price_range)


def with_price_range(usd: Interval, price_range: PriceRange) -> Interval:
    """Widen an amount at one price to all prices of the range."""
    return Interval(
        low=usd.low * price_range.low_ratio,
        best=usd.best,
        high=usd.high * price_range.high_ratio,
    )


def cost_of(candidate: Candidate) -> float:
    """Return the best estimate of the cost in US$; infinite where no price is known."""
    return candidate.cost_usd.best if candidate.cost_usd else float("inf")


def cheapest_of(candidates: Iterable[Candidate]) -> Candidate | None:
    """Return the cheapest of them, then the quickest; None where there is none."""
    return min(candidates, key=lambda c: (cost_of(c), c.hours.best, c.slug), default=None)
