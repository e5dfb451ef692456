"""What the train loop costs beside Keras' own ``fit``, and what it gains where ``fit`` cannot."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from benchmarks.clock import Failed, run
from benchmarks.figure import Figure
from tfdyno.model.statistics import bootstrap_median, median

if TYPE_CHECKING:
    from collections.abc import Iterator

MODELS = {"mlp": "tiny MLP", "cnn": "small CNN", "transformer": "small transformer"}
MOST_OVERHEAD = 1.0
"""Per cent of a step of Keras' own fit, from the issue."""
ROUNDS, SECONDS_S = 9, 1.0
QUICK_ROUNDS, QUICK_S = 2, 0.2
ENVIRONMENT = {"PYTHONPATH": "scripts", "CUDA_VISIBLE_DEVICES": "-1"}
_ARMS = {
    "loop": "no folder",
    "saves": "checkpoints at each epoch's end",
    "graph": "graph",
    "xla": "XLA for each replica",
}


def overhead(quick: bool) -> Iterator[Figure]:
    """Per cent that a step takes longer than in Keras' fit, on one device."""
    for name, title in MODELS.items():
        try:
            made = _job("one", name, quick)
        except Failed as reason:
            yield Figure(group="fit", name=title, unit="%", value=None, note=str(reason))
            continue
        for arm in ("loop", "saves"):
            yield _overhead(title, arm, made)


def replicas(quick: bool) -> Iterator[Figure]:
    """How many times as fast as Keras' fit under MirroredStrategy, with two replicas."""
    for name, title in MODELS.items():
        try:
            made = _job("two", name, quick)
        except Failed as reason:
            yield Figure(group="replicas", name=title, unit="x", value=None, note=str(reason))
            continue
        for arm in ("graph", "xla"):
            ratios = [1 / ratio for ratio in _ratios(made["arms"], arm, 0)]
            low, high = bootstrap_median([[ratio] for ratio in ratios])
            yield Figure(
                group="replicas",
                name=f"{title}, {_ARMS[arm]}",
                unit="x",
                value=median(ratios),
                runs=len(ratios),
                note=f"{low:.2f} to {high:.2f}; {_steps(made, 'keras')}",
            )


def _overhead(title: str, arm: str, made: dict[str, Any]) -> Figure:
    wall, cpu = ([100 * (r - 1) for r in _ratios(made["arms"], arm, clock)] for clock in (0, 1))
    low, high = bootstrap_median([[value] for value in wall])
    return Figure(
        group="fit",
        name=f"{title}, {_ARMS[arm]}",
        unit="%",
        value=median(wall),
        target=MOST_OVERHEAD,
        runs=len(wall),
        note=f"{low:.2f} % to {high:.2f} %; CPU time {median(cpu):.2f} %; {_steps(made, 'keras')}",
    )


def _ratios(arms: dict[str, Any], arm: str, clock: int) -> list[float]:
    """Of each round: this arm to Keras' fit, on the clock (0) or in CPU time (1)."""
    pairs = zip(arms[arm], arms["keras"], strict=True)
    return [one[clock] / other[clock] for one, other in pairs]


def _steps(made: dict[str, Any], arm: str) -> str:
    wall_s = median([wall_s for wall_s, _ in made["arms"][arm]])
    return f"steps of {1e3 * wall_s:.2f} ms in Keras, {made['steps']} in an epoch"


def _job(devices: str, name: str, quick: bool) -> dict[str, Any]:
    size = (QUICK_ROUNDS, QUICK_S) if quick else (ROUNDS, SECONDS_S)
    words = [sys.executable, "-m", "benchmarks.loop", devices, name, *map(str, size)]
    found: dict[str, Any] = json.loads(run(words, ENVIRONMENT).stdout.splitlines()[-1])
    return found
