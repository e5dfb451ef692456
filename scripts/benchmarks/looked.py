"""One training of a small model, by itself and looked at by ``tfdyno diagnose`` in turns.

``python -m benchmarks.looked MODEL ROUNDS SECONDS`` prints JSON: for each round the median steps of
both sides in seconds. The clock is a callback of the training, which is the same on both sides.
Both are measured in one process: two processes differ by more than a look costs.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import pairwise
from typing import TYPE_CHECKING

import keras
import numpy as np

from benchmarks.loop import MODELS  # first: it says how TensorFlow starts
from tfdyno.core.choose.workload import Workload
from tfdyno.core.messages.diagnose import Limits
from tfdyno.model.measure.statistics import median
from tfdyno.runtime.diagnose.fit import look_at_fit
from tfdyno.runtime.diagnose.watching import StepsInspection
from tfdyno.runtime.workload.fit_call import Call

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Logs

WARM_S = 4.0
"""More than a look waits until its steps count; both sides leave it out."""
STEPS_PER_EPOCH = 500
REST_S = 0.2
"""Of what a look does after the training's own steps, which is not measured here."""
TURNS = ("plain", "look", "look", "plain")


class Clock(keras.callbacks.Callback):  # type: ignore[misc]
    """Keeps when each step ended, and ends the training."""

    def __init__(self, seconds_s: float) -> None:
        """Begin with nothing seen; ``seconds_s`` are those of the training."""
        super().__init__()
        self.seconds_s = seconds_s
        self.ends: list[float] = []

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Called by Keras."""
        self.ends.append(time.perf_counter())
        if self.ends[-1] - self.ends[0] > self.seconds_s:
            self.model.stop_training = True


def measured(name: str, rounds: int, seconds_s: float) -> dict[str, list[float]]:
    """Train a model again and again, each time anew.

    Args:
        name: Of the model.
        rounds: Of four trainings, A B B A; each gives both sides a step in seconds.
        seconds_s: Of the steps that count in one training.
    """
    steps_s: dict[str, list[float]] = {"plain": [], "look": []}
    for _ in range(rounds):
        found = [(side, _step_s(side, name, seconds_s)) for side in TURNS]
        for side, all_s in steps_s.items():
            all_s.append(sum(step_s for one, step_s in found if one == side) / 2)
    return steps_s


def _step_s(side: str, name: str, seconds_s: float) -> float:
    keras.utils.clear_session()
    model, shape, _kind, batch = MODELS[name]()
    chance = np.random.default_rng(0)
    x = chance.normal(size=(STEPS_PER_EPOCH * batch, *shape)).astype(np.float32)
    own_s = WARM_S + seconds_s  # the clock ends it
    clock = Clock(own_s)
    arguments = {"x": x, "y": chance.integers(0, 10, len(x)), "batch_size": batch, "verbose": 0,
                 "epochs": 1_000_000, "callbacks": [clock]}  # fmt: skip
    if side == "look":
        limits = Limits(own_s=own_s, most_s=own_s, held_s=REST_S, alone_s=REST_S, stages_s=REST_S)
        look = StepsInspection(
            workload=Workload(reference="train.py", kind="script"), limits=limits
        )
        look_at_fit(Call(model=model, title="train.py", arguments=arguments), look)
    else:
        model.fit(**arguments)
    first = clock.ends[0] + WARM_S
    return median([b - a for a, b in pairwise(clock.ends) if a >= first])


if __name__ == "__main__":
    given = sys.argv[1:]
    print(json.dumps(measured(given[0], int(given[1]), float(given[2]))))
