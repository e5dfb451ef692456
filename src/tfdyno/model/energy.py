"""Energy of a step and the time that XLA needs to compile it: simple rules with wide intervals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno.core.interval import Interval

if TYPE_CHECKING:
    from tfdyno.core.time_model import TimeModel

JOULES_PER_KWH = 3.6e6


def step_energy_j(
    *, step_s: Interval, compute_s: float, memory_s: float, tdp_w: float, model: TimeModel
) -> Interval:
    """Predict the energy that one card draws in a step.

    The card draws a share of its TDP that depends on what it does: computing, moving bytes or
    waiting (``power_*`` constants); the shares' own ranges widen the interval.

    Args:
        step_s: Time of the step.
        compute_s: Part of the best time that computes.
        memory_s: Part of the best time that moves bytes.
        tdp_w: Power limit of the card.
        model: The time model.

    Returns:
        Joule on the card alone; host, fans and power supply come on top.
    """
    waiting_s = max(0.0, step_s.best - compute_s - memory_s)
    spent = {"power_compute": compute_s, "power_memory": memory_s, "power_launch": waiting_s}
    total = sum(spent.values())
    if total <= 0.0 or tdp_w <= 0.0:
        return Interval(low=0.0, best=0.0, high=0.0)
    share = Interval(
        low=sum(model.parameters[n].low * s for n, s in spent.items()) / total,
        best=sum(model.parameters[n].value * s for n, s in spent.items()) / total,
        high=sum(model.parameters[n].high * s for n, s in spent.items()) / total,
    )
    return Interval(
        low=step_s.low * share.low * tdp_w,
        best=step_s.best * share.best * tdp_w,
        high=step_s.high * share.high * tdp_w,
    )


def epoch_energy_kwh(step_j: Interval, *, samples: int, batch_size: int) -> Interval | None:
    """Energy of one pass over ``samples`` at ``step_j`` a step; None where their number is unknown.

    A last, smaller batch is a step too.
    """
    if not samples:
        return None
    return step_j.times(math.ceil(samples / batch_size) / JOULES_PER_KWH)


def compile_time_s(launches: float, execution: str, model: TimeModel) -> Interval:
    """Predict how long the first step compiles; zero where nothing is compiled.

    Linear in the kernels of the compiled step; the interval is that of the constants.
    """
    if execution != "xla":
        return Interval(low=0.0, best=0.0, high=0.0)
    fixed, each = model.parameters["compile_fixed"], model.parameters["compile_per_kernel"]
    return Interval(
        low=fixed.low + each.low * launches,
        best=fixed.value + each.value * launches,
        high=fixed.high + each.high * launches,
    )
