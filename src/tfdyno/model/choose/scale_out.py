"""Gains over one GPU from the estimates of one and several, and where more GPUs stop paying."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno.core.base.interval import Interval
from tfdyno.core.base.units import HOUR_S
from tfdyno.core.choose.scale_out import GpuPrice, ScaleOut, ScaleRow

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from tfdyno.core.choose.estimate import Estimate

PAYS_RATIO = 0.5
"""An added GPU pays while it brings at least this share of what one does alone in the program that
several run."""
CHANGED_EXECUTION = 0.1
"""Log half-width that a gain has beside that of the exchange where one GPU runs another program
than several (XLA alone, a graph under tf.distribute): a judgement, both errors being alike."""
MILLION = 1e6


def scale_out(
    estimates: Sequence[Estimate],
    *,
    holds: Literal["batch per replica", "global batch"],
    samples_per_epoch: int = 0,
    price: GpuPrice | None = None,
    through_host: bool = False,
) -> ScaleOut:
    """Compare estimates of one card over the number of replicas.

    The error of a card's own step is in both figures and cancels; what is left is that of the
    exchange (``Estimate.efficiency_ratio``).

    Args:
        estimates: Of one card: one replica, and any other numbers, each once.
        holds: What is the same in all of them.
        samples_per_epoch: 0: not known.
        price: Of one GPU.
        through_host: Whether the cards have no way to each other but the host's memory.

    Raises:
        ValueError: None of the estimates is of one replica.
    """
    ordered = sorted(estimates, key=lambda one: one.replicas)
    alone = ordered[0] if ordered else None
    if alone is None or alone.replicas != 1:
        raise ValueError("need an estimate of one replica to compare with")
    rows: list[ScaleRow] = []
    for one in ordered:
        gain, capped = _gain(one, alone)
        rows.append(
            ScaleRow(
                estimate=one,
                gain_ratio=gain,
                efficiency_ratio=gain.times(1.0 / one.replicas),
                added_ratio=_added(one, gain.best, rows),
                million_samples_usd=_usd(one, price, MILLION),
                usd_per_epoch=_usd(one, price, samples_per_epoch) if samples_per_epoch else None,
                capped=capped,
            )
        )
    switched = next((row for row in rows if row.estimate.execution != alone.execution), None)
    alike = switched and switched.estimate.batch_size == alone.batch_size
    return ScaleOut(
        gpu=alone.gpu,
        holds=holds,
        rows=tuple(rows),
        pays_until=_pays_until(rows),
        price=price,
        through_host=through_host,
        switched_to=switched.estimate.execution if switched else "",
        switch_ratio=1.0 / _program_alone(switched) if switched and alike else None,
    )


def _gain(one: Estimate, alone: Estimate) -> tuple[Interval, bool]:
    """Return the gain, and whether it had to be cut to the number of GPUs.

    Where the programs differ, a measurement of the user may have moved one of the two figures
    only: what is above the number of GPUs is then no gain of more of them.
    """
    best = one.samples_per_s.best / alone.samples_per_s.best
    if one.replicas == 1:
        return Interval(low=best, best=best, high=best), False
    differs = one.execution != alone.execution
    capped = differs and best > one.replicas
    best = min(best, float(one.replicas)) if differs else best
    around = one.efficiency_ratio
    below = math.log(around.best / around.low) if around else 0.0
    above = math.log(around.high / around.best) if around else 0.0
    changed = CHANGED_EXECUTION if differs else 0.0
    low = best * math.exp(-math.hypot(below, changed))
    high = best * math.exp(math.hypot(above, changed))
    return Interval(low=low, best=best, high=min(high, max(best, float(one.replicas)))), capped


def _added(one: Estimate, gain: float, before: Sequence[ScaleRow]) -> float:
    """Return what each GPU more brings over the last row of the same program, in GPUs alone."""
    if not before:
        return 1.0
    last = before[-1]
    if last.estimate.execution == one.execution:
        return (gain - last.gain_ratio.best) / (one.replicas - last.estimate.replicas)
    return (gain - _share(one, gain)) / (one.replicas - 1)


def _program_alone(row: ScaleRow) -> float:
    """Return what one GPU does in the program of a row, the exchange apart, in GPUs alone."""
    return _share(row.estimate, row.gain_ratio.best)


def _share(one: Estimate, gain: float) -> float:
    return gain / one.replicas / (1.0 - one.exposed_s / one.step_s.best)


def _pays_until(rows: Sequence[ScaleRow]) -> int:
    """Return the last row before the first whose added GPUs bring too little for their program."""
    found, program = rows[0], rows[0]
    for row in rows[1:]:
        if row.estimate.execution != program.estimate.execution:
            program = row
        if row.added_ratio < PAYS_RATIO * _program_alone(program):
            break
        found = row
    return found.estimate.replicas if found.gain_ratio.best >= 1.0 else 1


def _usd(one: Estimate, price: GpuPrice | None, samples: float) -> Interval | None:
    if price is None:
        return None
    per_s = price.usd_per_h * one.replicas / HOUR_S
    return one.samples_per_s.under(per_s * samples)
