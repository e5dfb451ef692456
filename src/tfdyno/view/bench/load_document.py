"""A load test as a JSON document: figures first, then every answer that was measured."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins
from tfdyno.core.measure.load import LOAD_FORMAT
from tfdyno.words.bench.load import main_stage

if TYPE_CHECKING:
    from tfdyno.core.measure.load import LoadResult

_RAW = ("start_s", "latency_s", "codes")


def load_document(result: LoadResult, *, every: bool = True) -> dict[str, Any]:
    """Return all of a load test.

    ``verdict`` (``good`` or ``failed``), ``faults``, the figures of the stretch that counts (as
    ``StageFigures``), ``knee_rate_per_s``, and all ``stages``. In a failed test the figures of the
    whole are null: those of its stretches tell what went wrong, not how fast the server is. The
    ``high`` of an interval is null where too few requests bound it.

    Args:
        result: The test.
        every: Whether every latency stands in it.
    """
    raw = to_builtins(result)
    figures = _bounded(to_builtins(main_stage(result).figures))
    for stage in raw["stages"]:
        _bounded(stage["figures"])
    if result.failed:
        figures = dict.fromkeys(figures)
        raw["knee_rate_per_s"] = None
    for stage in () if every else raw["stages"]:
        for name in _RAW:
            del stage["run"][name]
    return {
        "format": LOAD_FORMAT,
        "verdict": "failed" if result.failed else "good",
        "faults": raw.pop("faults"),
        **figures,
        **raw,
    }


def _bounded(figures: dict[str, Any]) -> dict[str, Any]:
    """Return the same figures; an end that is infinite, which JSON cannot say, is null."""
    for one in figures.values():
        if isinstance(one, dict) and one.get("high") == math.inf:
            one["high"] = None
    return figures
