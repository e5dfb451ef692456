"""Trainings in one process, by turns: the train loop beside Keras' own ``fit``.

``python -m benchmarks.loop one MODEL ROUNDS SECONDS`` on one device: Keras' fit, the loop without
and with checkpoints. ``python -m benchmarks.loop two MODEL ROUNDS SECONDS`` on two logical CPU
devices under MirroredStrategy: Keras' fit, the loop as a graph and with XLA. Prints JSON: seconds
of a step on the clock and of CPU time, by arm and round.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

os.environ |= {"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3"}

import keras
import numpy as np

from tfdyno.core.recipe import Recipe
from tfdyno.core.training import RunSettings
from tfdyno.runtime.train_loop import TrainPlan, train
from tfdyno.runtime.train_strategy import make_strategy
from tfdyno.runtime.train_watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable

EPOCHS = 3
"""Of which the first, with the building of the step in it, does not count."""
LEAST_STEPS = 10
PROBE_STEPS = 100


def mlp() -> tuple[Any, Any, Any, int]:
    """Steps of about a millisecond: nothing hides what is done between them."""
    layers = [keras.layers.Dense(64, activation="relu") for _ in range(2)]
    return _classifier([keras.Input((20,)), *layers], (20,), 32)


def cnn() -> tuple[Any, Any, Any, int]:
    """A small convolutional network on pictures of 28 x 28."""
    layers = keras.layers
    body = [
        keras.Input((28, 28, 1)),
        layers.Conv2D(16, 3, activation="relu"),
        layers.BatchNormalization(),
        layers.MaxPooling2D(),
        layers.Conv2D(32, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dropout(0.2),
    ]
    return _classifier(body, (28, 28, 1), 64)


def transformer() -> tuple[Any, Any, Any, int]:
    """Two blocks of attention over 32 places of 64 numbers."""
    layers = keras.layers
    inputs = x = keras.Input((32, 64))
    for _ in range(2):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 16)(x, x))
        wide = layers.Dense(128, activation="gelu")(x)
        x = layers.LayerNormalization()(x + layers.Dense(64)(wide))
    top = layers.Dense(10)(layers.GlobalAveragePooling1D()(x))
    return _compiled(keras.Model(inputs, top)), (32, 64), np.float32, 16


MODELS: dict[str, Callable[[], tuple[Any, Any, Any, int]]] = {
    "mlp": mlp,
    "cnn": cnn,
    "transformer": transformer,
}


def _classifier(body: list[Any], shape: Any, batch: int) -> tuple[Any, Any, Any, int]:  # noqa: ANN401
    return _compiled(keras.Sequential([*body, keras.layers.Dense(10)])), shape, np.float32, batch


def _compiled(model: Any) -> Any:  # noqa: ANN401
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"], jit_compile=False)
    return model


class Clock(keras.callbacks.Callback):  # type: ignore[misc]
    """Reads the clocks at the beginning of the second epoch and at the end of the last."""

    def __init__(self) -> None:
        """Begin with nothing read."""
        super().__init__()
        self.began = self.ended = (0.0, 0.0)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ANN401
        """Called by Keras."""
        if epoch == 1:
            self.began = _clocks()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ANN401
        """Called by Keras."""
        self.ended = _clocks()

    def per_step(self, steps: int) -> tuple[float, float]:
        """Seconds of a step on the clock, and of CPU time."""
        count = steps * (EPOCHS - 1)
        wall_s, cpu_s = (b - a for a, b in zip(self.began, self.ended, strict=True))
        return wall_s / count, cpu_s / count


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def measured(devices: str, name: str, rounds: int, seconds_s: float) -> dict[str, Any]:
    """Train by turns, each round in another order.

    Args:
        devices: ``one`` or ``two``.
        name: Of a model.
        rounds: How often each arm trains.
        seconds_s: That the steps of one training which count shall take together.
    """
    recipe = Recipe(strategy="mirrored", devices=2) if devices == "two" else Recipe()
    strategy = make_strategy(recipe)
    with strategy.scope() if strategy else contextlib.nullcontext():
        model, shape, kind, batch = MODELS[name]()
    chance = np.random.default_rng(0)

    def data(steps: int) -> dict[str, Any]:
        x = chance.normal(size=(steps * batch, *shape)).astype(kind)
        y = chance.integers(0, 10, len(x))
        return {"x": x, "y": y, "batch_size": batch, "verbose": 0}

    probe = data(PROBE_STEPS)
    wall_s, _ = _keras(model, {**probe, "epochs": EPOCHS}, PROBE_STEPS)
    steps = max(LEAST_STEPS, round(seconds_s / (EPOCHS - 1) / wall_s))
    arguments = {**data(steps), "epochs": EPOCHS}
    under = partial(_loop, model, arguments, steps)
    arms: dict[str, Callable[[], tuple[float, float]]] = {
        "keras": partial(_keras, model, arguments, steps)
    }
    if devices == "one":
        arms["loop"] = partial(under, recipe, saves=False)
        arms["saves"] = partial(under, recipe, saves=True)
    else:
        arms["graph"] = partial(under, replace(recipe, execution="graph"), saves=False)
        arms["xla"] = partial(under, replace(recipe, execution="xla"), saves=False)
    found: dict[str, list[tuple[float, float]]] = {arm: [] for arm in arms}
    order = list(arms)
    for number in range(rounds):
        order = order[1:] + order[:1] if number % 2 else order[::-1]
        for arm in order:
            found[arm].append(arms[arm]())
    return {"steps": steps, "batch": batch, "arms": found}


def _keras(model: Any, arguments: dict[str, Any], steps: int) -> tuple[float, float]:  # noqa: ANN401
    clock = Clock()
    model.train_function = None  # made anew, as the loop does
    model.jit_compile = False
    model.fit(**arguments, callbacks=[clock])
    return clock.per_step(steps)


def _loop(
    model: Any,  # noqa: ANN401
    arguments: dict[str, Any],
    steps: int,
    recipe: Recipe,
    *,
    saves: bool,
) -> tuple[float, float]:
    """As ``tfdyno train`` does it: events go to a pipe or, here, nowhere."""
    clock = Clock()
    with (
        tempfile.TemporaryDirectory(prefix="tfdyno-bench-") as folder,
        open(os.devnull, "w", encoding="ascii") as nowhere,  # noqa: PTH123
    ):

        def told(line: str) -> None:
            print(f"progress: {line}", file=nowhere, flush=True)

        plan = TrainPlan(
            workload=None,
            recipe=recipe,
            settings=RunSettings(output=folder if saves else "", save_model=False),
            title=model.name,
            watch=Watch(told),
            progress=told,
        )
        train(model, {**arguments, "callbacks": [clock]}, plan)
    return clock.per_step(steps)


if __name__ == "__main__":
    given = sys.argv[1:]
    print(json.dumps(measured(given[0], given[1], int(given[2]), float(given[3]))))
