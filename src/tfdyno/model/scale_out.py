"""Gains over one GPU from the estimates of one and several, and where more GPUs stop paying."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno.core.interval import Interval
from tfdyno.core.scale_out import GpuPrice, ScaleOut, ScaleRow
from tfdyno.model.cost import SECONDS_PER_HOUR

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from tfdyno.core.estimate import Estimate

PAYS_RATIO = 0.5
"""An added GPU pays while it brings at least this share of what one does alone."""
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
) -> ScaleOut:
    """Compare estimates of one card over the number of replicas.

    The error of a card's own step is in both figures and cancels; what is left is that of the
    exchange (``Estimate.efficiency_ratio``).

    Args:
        estimates: Of one card: one replica, and any other numbers, each once.
        holds: What is the same in all of them.
        samples_per_epoch: 0: not known.
        price: Of one GPU.

    Raises:
        ValueError: None of the estimates is of one replica.
    """
    ordered = sorted(estimates, key=lambda one: one.replicas)
    alone = ordered[0] if ordered else None
    if alone is None or alone.replicas != 1:
        raise ValueError("need an estimate of one replica to compare with")
    rows: list[ScaleRow] = []
    for one in ordered:
        gain = _gain(one, alone)
        rows.append(
            ScaleRow(
                estimate=one,
                gain_ratio=gain,
                efficiency_ratio=gain.times(1.0 / one.replicas),
                added_ratio=_added(one, gain, rows),
                million_samples_usd=_usd(one, price, MILLION),
                usd_per_epoch=_usd(one, price, samples_per_epoch) if samples_per_epoch else None,
            )
        )
    return ScaleOut(
        gpu=alone.gpu,
        holds=holds,
        rows=tuple(rows),
        pays_until=_pays_until(rows),
        price=price,
    )


def _gain(one: Estimate, alone: Estimate) -> Interval:
    best = one.samples_per_s.best / alone.samples_per_s.best
    if one.replicas == 1:
        return Interval(low=best, best=best, high=best)
    around = one.efficiency_ratio
    below = math.log(around.best / around.low) if around else 0.0
    changed = CHANGED_EXECUTION if one.execution != alone.execution else 0.0
    width = math.hypot(below, changed)
    most = max(best, float(one.replicas))
    high = best * math.exp(width)
    return Interval(low=best * math.exp(-width), best=best, high=min(high, most))


def _added(one: Estimate, gain: Interval, before: Sequence[ScaleRow]) -> float:
    if not before:
        return 1.0
    last = before[-1]
    return (gain.best - last.gain_ratio.best) / (one.replicas - last.estimate.replicas)


def _pays_until(rows: Sequence[ScaleRow]) -> int:
    """The last row before the first whose added GPUs bring too little."""
    found = 1
    for row in rows:
        if row.added_ratio < PAYS_RATIO:
            break
        found = row.estimate.replicas
    return found


def _usd(one: Estimate, price: GpuPrice | None, samples: float) -> Interval | None:
    if price is None:
        return None
    per_s = price.usd_per_h * one.replicas / SECONDS_PER_HOUR
    rate = one.samples_per_s
    return Interval(
        low=per_s * samples / rate.high,
        best=per_s * samples / rate.best,
        high=per_s * samples / rate.low,
    )
