"""Estimates moved by what was measured: on the same card in full, on others in part."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.interval import Interval
from tfdyno.core.recalibration import Recalibration
from tfdyno.model.statistics import mean, median

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfdyno.core.estimate import Estimate
    from tfdyno.core.recalibration import Anchor, Subject

OTHER_CARD_WEIGHT_RATIO = 0.7
"""Share of the log of the factor that another card takes over, where XLA compiles the step.

On the published TensorFlow measurements with XLA in ``truth/`` the mean error falls from 12.7 to
11.5 % and the median from 9.5 to 7.3 % (148 groups; every other card of the same model, mode and
precision as the anchor). Without XLA it rises (12.2 to 14.6 %), so nothing is taken over there;
nor from another precision (12.7 to 15.8 %).
"""


def recalibration(anchors: Iterable[Anchor], subject: Subject, card: str) -> Recalibration:
    """What ``anchors`` say of the estimates of ``subject`` on ``card``.

    On a card that was measured: the median of its factors. On another, with XLA: the mean of the
    logs of the measured cards' factors, times ``OTHER_CARD_WEIGHT_RATIO``.
    """
    alike = [anchor for anchor in anchors if anchor.subject == subject]
    own = tuple(anchor for anchor in alike if anchor.card == card)
    if own:
        factor = median([anchor.factor_ratio for anchor in own])
        return Recalibration(factor_ratio=factor, anchors=own, own_card=True)
    if not alike or subject.execution != "xla":
        return Recalibration()
    by_card = {a.card: [b for b in alike if b.card == a.card] for a in alike}
    logs = [math.log(median([a.factor_ratio for a in group])) for group in by_card.values()]
    return Recalibration(
        factor_ratio=math.exp(OTHER_CARD_WEIGHT_RATIO * mean(logs)), anchors=tuple(alike)
    )


def recalibrated(estimate: Estimate, found: Recalibration) -> Estimate:
    """The estimate with all its times multiplied, and what follows from them.

    Memory, the time to compile and the width of the intervals (as ratios) stay as they are.
    """
    factor = found.factor_ratio
    if not found.anchors:
        return estimate
    rate = estimate.samples_per_s
    epoch = estimate.energy_kwh_per_epoch
    return replace(
        estimate,
        step_s=estimate.step_s.times(factor),
        samples_per_s=Interval(low=rate.low / factor, best=rate.best / factor,
                               high=rate.high / factor),
        terms_s=_times(estimate.terms_s, factor),
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
        explanation=(
            replace(estimate.explanation, measured_ratio=factor) if estimate.explanation else None
        ),
        sources=(*estimate.sources, *(_source(anchor) for anchor in found.anchors)),
    )  # fmt: skip


def _times(seconds: dict[str, float], factor: float) -> dict[str, float]:
    return {name: value * factor for name, value in seconds.items()}


def _source(anchor: Anchor) -> str:
    return f"own measurement {anchor.measurement_id} on {anchor.card}, {anchor.measured_on}"
