"""How a wheel of TensorFlow runs on a card, with what its XLA does there."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.catalog.software import wheel_support
from tfdyno.rules.compiler import CompilePlace, faults_at, warning_of

if TYPE_CHECKING:
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.software import WheelSupport


@functools.lru_cache(maxsize=1024)
def supported(gpu: Gpu, tensorflow: str) -> WheelSupport:
    """Return the verdict on a wheel, with the faults of XLA that models meet there.

    Where the release does not run, the faults are those of the smallest that does.
    """
    found = wheel_support(gpu, tensorflow)
    runs = found.outcome in ("native", "jit")
    release = found.tensorflow if runs else found.smallest_runnable
    if not release:
        return found
    place = CompilePlace(
        framework="tensorflow", version=release, compute_capability=gpu.compute_capability
    )
    faults = faults_at(place)
    stops = any(one.stops for one in faults)
    if not runs and not stops:
        return found
    told = tuple(warning_of(one, place, about=True) for one in faults)
    return replace(found, known_faults=told, xla_fails=runs and stops)
