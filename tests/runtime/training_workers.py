"""One of two processes that train together; TF_CONFIG says which, RUN_FOLDER is what they share."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import keras
from tests.runtime import training_models as t

from tfdyno.core.recipe.recipe import Recipe
from tfdyno.runtime.recipe.strategy import make_strategy, worker_rank
from tfdyno.runtime.train import consensus as train_meeting

strategy = make_strategy(Recipe(strategy="multiworker"))
train_meeting.MOST_CALLS = 1  # the trainings here are over before they meet once otherwise
STOPS = (6, 5)
"""Batches after which each worker is sent SIGTERM."""


def run(*callbacks: Any, **settings: Any) -> dict[str, Any]:
    """The same training as ``training_mirrored`` does on two devices of one process."""
    keras.backend.clear_session()
    t.begin()
    with strategy.scope():
        model = t.dense(t.momentum())
    outcome = t.trained(
        model, {**t.FOR_WORKERS, "callbacks": list(callbacks)},
        {"strategy": "multiworker", **t.WORKERS_RECIPE}, save_model=False, **settings,
    )  # fmt: skip
    return {
        "history": outcome.history, "weights": [w.ravel().tolist() for w in t.weights(model)],
        "stopped": outcome.stopped, "steps": outcome.steps, "updates": outcome.updates,
        "resumed_from": outcome.resumed_from, "replicas": outcome.replica_count,
    }  # fmt: skip


FOLDER = os.environ["RUN_FOLDER"]
CASES = {
    "whole": lambda: run(output=f"{FOLDER}/whole"),
    "stopped": lambda: run(t.StopAt(STOPS[worker_rank()]), output=f"{FOLDER}/run"),
    "resumed": lambda: run(output=f"{FOLDER}/run", resume=True),
    "one_asked": lambda: run(
        *([t.StopAt(3)] if worker_rank() == 1 else []), output=f"{FOLDER}/one"
    ),
}

if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(t.run_cases(CASES)))
