"""Hours, money and energy of a run, from the estimate of one step and the price of an hour."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno.core.base.interval import NOTHING
from tfdyno.core.base.units import HOUR_S
from tfdyno.core.choose.hardware import OWNED
from tfdyno.model.time.energy import JOULES_PER_KWH

if TYPE_CHECKING:
    from tfdyno.core.base.interval import Interval
    from tfdyno.core.choose.advice import Assumed, Run
    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.hardware import Offer


def steps_of(run: Run, estimate: Estimate) -> int:
    """Count the run's optimizer steps on this many replicas.

    Where the run has so many samples, the steps that see each once; a last, smaller batch is a step
    too. Where it has so many steps, all of them, however much data they see.
    """
    if run.length == "steps":
        return run.steps
    return math.ceil(run.samples / estimate.global_batch_size)


def run_hours(run: Run, estimate: Estimate, *, spot_overhead_ratio: float) -> Interval:
    """Return wall-clock hours of the run, the compilation in the first step counted once.

        t = (steps * step + compile + validation) * (1 + overhead) / 3600

    Args:
        run: How many samples there are to see.
        estimate: Of one step, on this card and number of replicas.
        spot_overhead_ratio: Share of hours lost to interruptions; 0.0 for capacity that stays.
    """
    training = estimate.step_s.times(steps_of(run, estimate)).together(estimate.compile_s)
    seconds = training.together(_validation_s(run, estimate))
    return seconds.times((1.0 + spot_overhead_ratio) / HOUR_S)


def validation_hours(
    run: Run, estimate: Estimate, *, spot_overhead_ratio: float
) -> Interval | None:
    """Return the part of ``run_hours`` that validates; None where no pass is counted.

        t = (batches * forward + compile of the forward pass) * (1 + overhead) / 3600

    A batch is that of the step, and takes its forward pass, which is a program of its own.
    """
    if not run.validation_passes:
        return None
    seconds = _validation_s(run, estimate)
    return seconds.times((1.0 + spot_overhead_ratio) / HOUR_S)


def run_energy_kwh(run: Run, estimate: Estimate) -> Interval:
    """Return the energy that the GPUs draw in the run, without the host, in kWh."""
    steps = steps_of(run, estimate) + _validation_steps(run, estimate)
    return estimate.energy_j_per_step.times(steps / JOULES_PER_KWH)


def _validation_s(run: Run, estimate: Estimate) -> Interval:
    if not run.validation_passes:
        return NOTHING
    passes = estimate.step_s.times(_validation_steps(run, estimate))
    compiling = estimate.forward_compile_s
    return passes.together(compiling) if compiling else passes


def _validation_steps(run: Run, estimate: Estimate) -> float:
    """Return steps of training that take as long as all passes: nothing is exchanged in a pass."""
    batches = math.ceil(run.validation_samples / estimate.global_batch_size)
    alone_ratio = 1.0 - estimate.exposed_s / estimate.step_s.best
    return run.validation_passes * batches * estimate.forward_ratio * alone_ratio


def run_cost_usd(
    offer: Offer, hours: Interval, energy_kwh: Interval, *, assumed: Assumed
) -> Interval:
    """Return the run's money: hours at the offer's price, or electricity of an owned card."""
    if offer.provider == OWNED:
        return energy_kwh.times(assumed.electricity_usd_per_kwh)
    return hours.times(offer.usd_per_h)
