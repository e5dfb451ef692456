"""Data, small models and ways to train them, for the children that ``training_child`` starts."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf

from tfdyno.core.base.errors import TfdynoError
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.training import RunSettings, TrainOutcome
from tfdyno.runtime.checkpoint.state import state_of
from tfdyno.runtime.train.loop import train
from tfdyno.runtime.train.watch import TrainPlan, Watch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tfdyno.core.base.untyped import Logs, Model, Optimizer, Tensor, Value

SEED = 5
COUNT = 72
_random = np.random.default_rng(0)
x = _random.normal(size=(COUNT, 6)).astype("float32")
y = (x.sum(1, keepdims=True) > 0).astype("float32")
weight = _random.uniform(0.5, 2.0, size=COUNT).astype("float32")
FOR_WORKERS: dict[str, Any] = {
    "x": x[:64], "y": y[:64], "batch_size": 16, "epochs": 3, "shuffle": False,
    "validation_data": (x[:32], y[:32]),
}  # fmt: skip
WORKERS_RECIPE = {"execution": "xla", "accumulation": 2, "clip_norm": 0.5}


def dense(optimizer: Optimizer = "sgd", *more: Any, loss: str = "mse", **how: Any) -> Value:
    """Two dense layers with the layers of ``more`` between them, compiled."""
    layers = [keras.layers.Dense(5, "tanh"), *more, keras.layers.Dense(1, dtype="float32")]
    model = keras.Sequential([keras.Input((6,)), *layers])
    model.compile(optimizer, loss, **{"metrics": ["mae"], "jit_compile": False, **how})
    return model


def momentum(**how: Any) -> Value:
    """An optimizer with a state, large steps and no normalisation that hides a wrong factor."""
    return keras.optimizers.SGD(0.1, momentum=0.9, **how)


def begin(seed: int = SEED, policy: str = "float32") -> None:
    """What a process does before it builds a model."""
    keras.config.set_dtype_policy(policy)
    keras.utils.set_random_seed(seed)


def trained(
    model: Model,
    arguments: dict[str, Any],
    recipe: dict[str, Any] | None = None,
    told: list[str] | None = None,
    **settings: Any,
) -> TrainOutcome:
    """Train as the child of ``tfdyno train`` does; ``told`` gets the lines of its progress."""
    lines = [] if told is None else told
    plan = TrainPlan(
        recipe=Recipe(**{"seed": SEED, **(recipe or {})}), settings=RunSettings(**settings),
        watch=Watch(lines.append), progress=lines.append,
    )  # fmt: skip
    return train(model, arguments, plan)


def weights(model: Model) -> list[Any]:
    """Every variable of training, as it was saved."""
    return [np.asarray(v) for v in model.trainable_variables]


def state(model: Model) -> list[Any]:
    """All that training changes: weights, moving averages, seeds, the optimizer's slots."""
    kept = [(name, v) for name, v in state_of(model) if not name.startswith("metrics/")]
    return [np.asarray(tf.convert_to_tensor(getattr(v, "value", v))) for _, v in kept]


def apart(a: Tensor, b: Tensor) -> float:
    """The largest difference between two lists of arrays."""
    pairs = [
        (np.asarray(p, "float64"), np.asarray(q, "float64")) for p, q in zip(a, b, strict=True)
    ]
    return max((float(np.abs(p - q).max()) for p, q in pairs if p.size), default=0.0)


def parts_apart(model: Model) -> float:
    """The largest difference between the replicas' copies of what they have in common."""
    found = [0.0]
    for variable in (*model.variables, *model.optimizer.variables):
        raw = variable.value
        parts = getattr(raw, "values", ())
        if getattr(raw, "synchronization", None) != tf.VariableSynchronization.ON_READ and parts:
            values = [np.asarray(part).astype("float64") for part in parts]
            found.append(apart(values[:1], values[1:]))
    return max(found)


def ask_to_stop() -> None:
    """What a cluster sends to a process that has to make room."""
    os.kill(os.getpid(), signal.SIGTERM)


class StopAt(keras.callbacks.Callback):
    """SIGTERM when so many batches are done, or so many of the validation."""

    def __init__(self, batch: int = 0, test_batch: int = 0) -> None:
        super().__init__()
        self.batch, self.test_batch, self.batches, self.test_batches = batch, test_batch, 0, 0

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        before, self.batches = self.batches, self.batches + batch + 1 - getattr(self, "last", 0)
        self.last = batch + 1
        if before < self.batch <= self.batches:
            ask_to_stop()

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        self.last = 0

    def on_test_batch_end(self, batch: int, logs: Logs = None) -> None:
        self.test_batches += 1
        if self.test_batches == self.test_batch:
            ask_to_stop()


def markers(folder: Path) -> list[Any]:
    """Where each checkpoint stands, and what it holds beside the state."""
    found = [json.loads(one.read_bytes()) for one in sorted(folder.glob("checkpoints/*.json"))]
    return [[one["epoch"], one["step_in_epoch"], one["position"], sorted(one["extra"])]
            for one in found]  # fmt: skip


def said(call: Callable[[], Any]) -> str:
    """The sentence of a refusal."""
    try:
        call()
    except TfdynoError as error:
        return str(error)
    return ""


def run_cases(
    cases: dict[str, Callable[[], Any]], slow: dict[str, Callable[[], Any]] | None = None
) -> dict[str, Any]:
    """The results by name; a case that raises leaves its trace and stops no other.

    The command line has a path, and after it ``slow`` or names of cases.
    """
    words, every = sys.argv[2:], {**cases, **(slow or {})}
    chosen = (slow or {}) if words == ["slow"] else {n: every[n] for n in words or cases}
    found: dict[str, Any] = {}
    for name, run in chosen.items():
        began = time.perf_counter()
        try:
            found[name] = run()
        except Exception:
            found[name] = {"raised": traceback.format_exc()}
        found[name] = {**found[name], "seconds": round(time.perf_counter() - began, 2)}
        keras.backend.clear_session()
    return found
