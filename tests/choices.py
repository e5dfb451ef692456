"""Options of a recipe for tests: one card, half a gigabyte, 10 ms, unless said otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.auto_recipe import Option

GIB = 1 << 30


def around(best: float) -> Interval:
    """Give or take a fifth."""
    return Interval(low=0.8 * best, best=best, high=1.2 * best)


def option(milliseconds: float = 10.0, gibibytes: float = 0.5, **changes: Any) -> Option:
    """An option on a card with 2 GiB."""
    base = Option(
        precision="float32",
        execution="xla",
        replicas=1,
        batch_size=32,
        accumulation=1,
        update_s=around(1e-3 * milliseconds),
        device_memory_bytes=around(gibibytes * GIB),
        usable_memory_bytes=2.0 * GIB,
        fits=gibibytes <= 2.0,
        fits_surely=1.2 * gibibytes <= 2.0,
        compile_s=around(20.0),
        changes=0,
    )
    return replace(base, **changes)
