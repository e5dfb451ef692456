"""Faults of XLA that a workload will meet, told before it is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.rules.compiler import Place, faults_at, patterns_of, warning_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfdyno.core.hardware import Gpu
    from tfdyno.jobs._predict import Predictor


def foretold(predictor: Predictor, gpus: Iterable[Gpu]) -> tuple[str, ...]:
    """A sentence for every known fault of the predictor's release, model and one of the cards.

    Args:
        predictor: Of the workload.
        gpus: Cards on which XLA would compile it.
    """
    software = predictor.traced.software
    patterns = patterns_of(predictor.traced.program)
    places = [
        Place(
            framework=software.framework,
            version=software.version,
            compute_capability=gpu.compute_capability,
        )
        for gpu in gpus
        if gpu.vendor.upper() == "NVIDIA"
    ]
    found = [warning_of(one, place) for place in places for one in faults_at(place, patterns)]
    return tuple(dict.fromkeys(found))
