"""What the train loop costs beside Keras' own ``fit``, and what it gains where ``fit`` cannot."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from benchmarks.clock import Failed, run
from benchmarks.figure import Figure
from tfdyno.model.measure.statistics import bootstrap_median, median

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Ratio = tuple[float, float, float]

MODELS = {"mlp": "tiny MLP", "cnn": "small CNN", "transformer": "small transformer"}
ON_JAX = {"wide": "wide MLP"}
MOST_OVERHEAD = 1.0
"""Per cent of a step of Keras' own fit, from the issue."""
SECONDS_S = {"mlp": 60.0, "cnn": 20.0, "transformer": 20.0, "wide": 40.0}
"""Of each training: the shorter the step, the smaller what must be seen."""
REPLICAS_S = 10.0
"""Under a strategy: differences there are large."""
QUICK_S = 2.0
ENVIRONMENT = {"PYTHONPATH": "scripts", "CUDA_VISIBLE_DEVICES": "-1"}


def overhead(quick: bool) -> Iterator[Figure]:
    """Per cent that a step takes longer than in Keras' fit, on one device."""
    return _beside_fit("fit", "one", MODELS, _ratio, quick)


def overhead_on_jax(quick: bool) -> Iterator[Figure]:
    """The same on JAX, where the steps of an epoch are under way together: by epochs."""
    return _beside_fit("fit-jax", "jax", ON_JAX, _of_epochs, quick)


def _beside_fit(
    group: str, devices: str, models: dict[str, str], ratio_of: Callable[..., Ratio], quick: bool
) -> Iterator[Figure]:
    for name, title in models.items():
        try:
            made = _job(devices, name, quick)
        except Failed as reason:
            yield Figure(group=group, name=title, unit="%", value=None, note=str(reason))
            continue
        value, low, high = (100 * (one - 1) for one in ratio_of(made, "loop", "keras", "again"))
        same, *_ = (100 * (one - 1) for one in ratio_of(made, "again", "keras"))
        yield Figure(
            group=group,
            name=title,
            unit="%",
            value=value,
            target=MOST_OVERHEAD,
            runs=len(made["arms"]["keras"]),
            note=f"{low:.2f} % to {high:.2f} %; Keras beside itself {same:.2f} %; {_steps(made)}",
        )


def _of_epochs(made: dict[str, Any], arm: str, *others: str) -> Ratio:
    """Of an arm's epochs to the mean of others' next to them, with its interval.

    Without the first three, in which the step is built and the machine warms up.
    """
    arms = made["arms"]
    rows = zip(arms[arm], *(arms[other] for other in others), strict=True)
    ratios = [own_s / (sum(beside) / len(beside)) for own_s, *beside in rows][3:]
    low, high = bootstrap_median([[value] for value in ratios])
    return median(ratios), low, high


def replicas(quick: bool) -> Iterator[Figure]:
    """How many times as fast as Keras' fit under MirroredStrategy, with two replicas."""
    for name, title in MODELS.items():
        try:
            made = _job("two", name, quick)
        except Failed as reason:
            yield Figure(group="replicas", name=title, unit="x", value=None, note=str(reason))
            continue
        for arm, way in {"graph": "graph", "xla": "XLA for each replica"}.items():
            value, low, high = _ratio(made, "keras", arm, arm)
            yield Figure(
                group="replicas",
                name=f"{title}, {way}",
                unit="x",
                value=value,
                runs=len(made["arms"]["keras"]),
                note=f"{low:.2f} to {high:.2f}; {_steps(made)}",
            )


def _ratio(made: dict[str, Any], arm: str, *others: str) -> Ratio:
    """Of an arm's turns to the mean of others' next to them, with its interval over epochs.

    Without the first epoch, which builds, and the turns in which an epoch ends.
    """
    arms, size = made["arms"], made["turns_per_epoch"]
    ratios = [
        turn_s / (sum(beside) / len(beside))
        for turn_s, *beside in zip(arms[arm], *(arms[other] for other in others), strict=True)
    ]
    epochs = [ratios[first + 1 : first + size] for first in range(size, len(ratios), size)]
    medians = [median(epoch) for epoch in epochs]
    low, high = bootstrap_median([[value] for value in medians])
    return median(medians), low, high


def _steps(made: dict[str, Any]) -> str:
    step_s = median(made["arms"]["keras"]) / made["steps"]
    return f"steps of {1e3 * step_s:.2f} ms in Keras, {made['steps']} in a turn"


def _job(devices: str, name: str, quick: bool) -> dict[str, Any]:
    seconds_s = QUICK_S if quick else REPLICAS_S if devices == "two" else SECONDS_S[name]
    words = [sys.executable, "-m", "benchmarks.loop", devices, name, str(seconds_s)]
    found: dict[str, Any] = json.loads(run(words, ENVIRONMENT).stdout.splitlines()[-1])
    return found
