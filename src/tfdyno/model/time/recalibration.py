"""Estimates moved by what was measured: on the same card in full, on others in part."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.recalibration import Recalibration
from tfdyno.model.measure.statistics import mean, median

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.explanation import Explanation
    from tfdyno.core.choose.recalibration import Anchor, Subject

OWN_CARD_WIDTH = 0.75
"""What is left of the interval on the measured card, at whatever batch.

Of published TensorFlow runs on one card, one batch measured and carried in full to another, nine in
ten lie within 0.21 instead of 0.28 in log(time) with XLA (712 pairs, half of them at twice or half
the batch) and within 0.10 instead of 0.45 without (236): the smaller gain is taken.
"""


def recalibration(anchors: Iterable[Anchor], subject: Subject, card: str) -> Recalibration:
    """Return what ``anchors`` say of the estimates of ``subject`` on ``card``.

    On a card that was measured: the median of its factors. On another: the mean of the logs of the
    measured cards' factors, times ``other_card_weight``.
    """
    alike = [anchor for anchor in anchors if anchor.subject == subject]
    own = tuple(anchor for anchor in alike if anchor.card == card)
    if own:
        factor = median([anchor.factor_ratio for anchor in own])
        return Recalibration(
            factor_ratio=factor, anchors=own, own_card=True, width_ratio=OWN_CARD_WIDTH
        )
    if not alike:
        return Recalibration()
    by_card = {a.card: [b for b in alike if b.card == a.card] for a in alike}
    logs = [math.log(median([a.factor_ratio for a in group])) for group in by_card.values()]
    factor = math.exp(other_card_weight(len(logs)) * mean(logs))
    left = other_card_width(len(logs))
    return Recalibration(factor_ratio=factor, anchors=tuple(alike), width_ratio=left)


def other_card_weight(measured: int) -> float:
    """Share of the log of the factor that another card takes over: n / (n + 1) of n measured cards.

    That is the best estimate where half of the variance of log(measured / estimated) belongs to the
    workload and half to the card. On the published TensorFlow measurements in ``truth/``, kinds of
    model left out, one measured card takes the mean error on the others from 13.0 to 10.9 % with
    XLA (206 workloads on a card) and from 12.3 to 10.6 % without (150), two from 13.7 to 10.3 % and
    from 12.3 to 9.9 %. No other weight is better by more than 0.1 points. Chosen on one half of the
    kinds of model, the weight of one card would be 0.6 or 0.35; each improves the other half too.
    """
    return measured / (measured + 1)


def other_card_width(measured: int) -> float:
    """Return what is left of the interval on a card that was not measured, of n measured ones.

    ::

        sqrt(1/2 + 1/2 * 1 / (n + 1))

    The card's half of the variance stays; of the workload's half the mean of n cards, each with an
    error of its own, leaves 1 / (n + 1). How often such intervals hold is on the accuracy page.
    """
    return math.sqrt(0.5 + 0.5 / (measured + 1))


def recalibrated(estimate: Estimate, found: Recalibration) -> Estimate:
    """Multiply all times of the estimate, narrow its intervals, and update what follows from them.

    Memory and the time to compile stay as they are.
    """
    factor, left = found.factor_ratio, found.width_ratio
    if not found.anchors:
        return estimate
    rate = estimate.samples_per_s.narrowed(left)
    epoch = estimate.energy_kwh_per_epoch
    return replace(
        estimate,
        step_s=estimate.step_s.narrowed(left).times(factor),
        samples_per_s=Interval(low=rate.low / factor, best=rate.best / factor,
                               high=rate.high / factor),
        terms_s=_times(estimate.terms_s, factor),
        exposed_s=estimate.exposed_s * factor,
        mfu_ratio=estimate.mfu_ratio / factor,
        energy_j_per_step=estimate.energy_j_per_step.times(factor),
        energy_kwh_per_epoch=epoch.times(factor) if epoch else None,
        class_s=_times(estimate.class_s, factor),
        layers=tuple(
            replace(layer, step_s=layer.step_s * factor,
                    by_phase_s=_times(layer.by_phase_s, factor),
                    by_class_s=_times(layer.by_class_s, factor))
            for layer in estimate.layers
        ),
        roofline=tuple(
            replace(point, time_s=point.time_s * factor,
                    rate_flops_per_s=point.rate_flops_per_s / factor)
            for point in estimate.roofline
        ),
        explanation=_moved(estimate.explanation, found) if estimate.explanation else None,
        sources=(*estimate.sources, *(_source(anchor) for anchor in found.anchors)),
    )  # fmt: skip


def _moved(explanation: Explanation, found: Recalibration) -> Explanation:
    """Return the model's own sum, with the factor that follows it and the width that is left."""
    where = "on this card" if found.own_card else "on another card"
    width = replace(
        explanation.width,
        log_half_width_ratio=explanation.width.log_half_width_ratio * found.width_ratio,
        reasons=(
            *explanation.width.reasons,
            f"{found.width_ratio:.0%} of the width is left: you measured the workload {where}",
        ),
    )
    return replace(explanation, measured_ratio=found.factor_ratio, width=width)


def _times(seconds: dict[str, float], factor: float) -> dict[str, float]:
    return {name: value * factor for name, value in seconds.items()}


def _source(anchor: Anchor) -> str:
    return f"own measurement {anchor.measurement_id} on {anchor.card}, {anchor.measured_on}"
