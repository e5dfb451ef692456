"""What a look of ``tfdyno diagnose`` costs the steps that it looks at."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from benchmarks.clock import Failed, run
from benchmarks.figure import Figure
from benchmarks.training import ENVIRONMENT, MODELS
from tfdyno.model.measure.statistics import bootstrap_median, median

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUNDS = 3
SECONDS_S = 3.0


def looking(quick: bool) -> Iterator[Figure]:
    """Per cent that a step takes longer while it is looked at."""
    rounds = 1 if quick else ROUNDS
    for name, title in list(MODELS.items())[: 1 if quick else None]:
        try:
            ratios, step_s = _ratios(name, rounds)
        except Failed as reason:
            yield Figure(group="look", name=title, unit="%", value=None, note=str(reason))
            continue
        low, high = bootstrap_median([[ratio] for ratio in ratios])
        yield Figure(
            group="look",
            name=title,
            unit="%",
            value=100 * (median(ratios) - 1),
            runs=4 * rounds,
            note=f"{100 * (low - 1):.1f} % to {100 * (high - 1):.1f} %; "
            f"steps of {1e3 * step_s:.2f} ms by themselves",
        )


def _ratios(name: str, rounds: int) -> tuple[list[float], float]:
    """Looked at over plain of each round, and the plain step in seconds."""
    words = [sys.executable, "-m", "benchmarks.looked", name, str(rounds), str(SECONDS_S)]
    found = json.loads(run(words, ENVIRONMENT).stdout.splitlines()[-1])
    ratios = [look / plain for look, plain in zip(found["look"], found["plain"], strict=True)]
    return ratios, median(found["plain"])
