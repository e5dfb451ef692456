"""Hours, money and energy of a run, from the estimate of one step and the price of an hour."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno.core.hardware import OWNED
from tfdyno.core.interval import Interval
from tfdyno.model.energy import JOULES_PER_KWH

if TYPE_CHECKING:
    from tfdyno.core.advice import Assumed, Run
    from tfdyno.core.estimate import Estimate
    from tfdyno.core.hardware import Offer

SECONDS_PER_HOUR = 3600.0


def steps_of(run: Run, estimate: Estimate) -> int:
    """Optimizer steps of the run on this many replicas.

    Where the run has so many samples, the steps that see each once; a last, smaller batch is a step
    too. Where it has so many steps, all of them, however much data they see.
    """
    if run.length == "steps":
        return run.steps
    return math.ceil(run.samples / estimate.global_batch_size)


def run_hours(run: Run, estimate: Estimate, *, spot_overhead_ratio: float) -> Interval:
    """Wall-clock hours of the run, the compilation in the first step counted once.

        t = (steps * step + compile) * (1 + overhead) / 3600

    Args:
        run: How many samples there are to see.
        estimate: Of one step, on this card and number of replicas.
        spot_overhead_ratio: Share of hours lost to interruptions; 0.0 for capacity that stays.
    """
    steps = steps_of(run, estimate)
    step, first = estimate.step_s, estimate.compile_s
    seconds = Interval(
        low=steps * step.low + first.low,
        best=steps * step.best + first.best,
        high=steps * step.high + first.high,
    )
    return seconds.times((1.0 + spot_overhead_ratio) / SECONDS_PER_HOUR)


def run_energy_kwh(run: Run, estimate: Estimate) -> Interval:
    """Energy that the GPUs draw in the run, without the host, in kWh."""
    return estimate.energy_j_per_step.times(steps_of(run, estimate) / JOULES_PER_KWH)


def run_cost_usd(
    offer: Offer, hours: Interval, energy_kwh: Interval, *, assumed: Assumed
) -> Interval:
    """Money for the run: hours at the offer's price, or electricity where the card is owned."""
    if offer.provider == OWNED:
        return energy_kwh.times(assumed.electricity_usd_per_kwh)
    return hours.times(offer.usd_per_h)
