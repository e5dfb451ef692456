"""Trainings in one process that hand over every few steps: the train loop beside Keras' ``fit``.

``python -m benchmarks.loop one MODEL SECONDS`` on one device: Keras' fit, the same again, and the
loop. ``python -m benchmarks.loop two MODEL SECONDS`` on two logical CPU devices under
MirroredStrategy: Keras' fit, the loop as a graph and with XLA. ``python -m benchmarks.loop jax
MODEL SECONDS`` on JAX: as on one device, by epochs. Each trains in a thread of its own,
one at a time: what disturbs the machine for longer than a turn meets all of them. Prints JSON:
seconds of each turn, and of those in which an epoch ends, by arm.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

os.environ |= {
    "KERAS_BACKEND": "jax" if sys.argv[1:2] == ["jax"] else "tensorflow",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "JAX_PLATFORMS": "cpu",
}

import keras
import numpy as np
import tensorflow as tf

from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.jax_plan import JaxPlan
from tfdyno.core.train.training import RunSettings
from tfdyno.runtime.recipe.strategy import make_strategy
from tfdyno.runtime.train.watch import TrainPlan, Watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Logs, Model, Shape, Value

IS_JAX = os.environ["KERAS_BACKEND"] == "jax"
TURN_S = 0.02
"""Long beside a hand-over (some 20 us), short beside what else happens on a machine."""
TURNS_PER_EPOCH = 40
EPOCH_S = 0.4
"""Of a turn on JAX, which is an epoch."""
PROBE_STEPS = 60


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


def wide() -> tuple[Any, Any, Any, int]:
    """Layers wide enough for steps of some 20 ms."""
    layers = [keras.layers.Dense(512, activation="relu") for _ in range(3)]
    return _classifier([keras.Input((512,)), *layers], (512,), 256)


MODELS: dict[str, Callable[[], tuple[Any, Any, Any, int]]] = {
    "mlp": mlp,
    "cnn": cnn,
    "transformer": transformer,
    "wide": wide,
}


def _classifier(body: list[Any], shape: Shape, batch: int) -> tuple[Any, Any, Any, int]:
    return _compiled(keras.Sequential([*body, keras.layers.Dense(10)])), shape, np.float32, batch


def _compiled(model: Model) -> Value:
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"], jit_compile=IS_JAX)
    return model


class Turns:
    """Lets one of several threads run at a time, in a ring."""

    def __init__(self, count: int) -> None:
        """Give the first turn to number 0."""
        self._mine = [threading.Semaphore(0) for _ in range(count)]
        self._mine[0].release()

    def wait(self, number: int) -> None:
        """Go on when the turn comes."""
        self._mine[number].acquire()

    def end(self, number: int) -> None:
        """Let the next go on."""
        self._mine[(number + 1) % len(self._mine)].release()


class Clock(keras.callbacks.Callback):  # type: ignore[misc]
    """Ends the turn every few steps and keeps how long it took."""

    def __init__(self, turns: Turns, number: int, steps: int, count: int) -> None:
        """Begin with nothing read.

        Args:
            turns: Of all trainings.
            number: Of this training among them.
            steps: Of a turn.
            count: Turns until the end.
        """
        super().__init__()
        self.turns, self.number, self.steps, self.count = turns, number, steps, count
        self.turns_s: list[float] = []
        self._spent_s, self._begun_s = 0.0, 0.0

    def now_s(self) -> float:
        """Seconds that this training has run: what it does by the clock it does as if alone."""
        return self._spent_s + time.perf_counter() - self._begun_s

    def on_train_begin(self, logs: Logs = None) -> None:
        """Called by Keras."""
        self._begun_s = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Called by Keras."""
        if (batch + 1) % self.steps:
            return
        self.turns_s.append(time.perf_counter() - self._begun_s)
        self._spent_s += self.turns_s[-1]
        self.turns.end(self.number)
        if len(self.turns_s) < self.count:
            self.turns.wait(self.number)
        self._begun_s = time.perf_counter()


class EpochClock(Clock):
    """Ends the turn with each epoch, on JAX: for a callback of batches Keras would wait for each.

    What an epoch keeps at its end is in the turn, behind the clock; that its last step is done is
    before it. CPU time of the process, which alone runs then: what else the machine does is not in.
    """

    def on_train_begin(self, logs: Logs = None) -> None:
        """Called by Keras."""

    on_train_batch_end = keras.callbacks.Callback.on_train_batch_end

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Called by Keras."""
        if self.turns_s:
            self.turns.end(self.number)
            self.turns.wait(self.number)
        self._begun_s, self._cpu_s = time.perf_counter(), time.process_time()

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Called by Keras, when it has read the loss."""
        self.turns_s.append(time.process_time() - self._cpu_s)
        self._spent_s += time.perf_counter() - self._begun_s
        self._begun_s = time.perf_counter()

    def on_train_end(self, logs: Logs = None) -> None:
        """Called by Keras."""
        self.turns.end(self.number)


def measured(devices: str, name: str, seconds_s: float) -> dict[str, Any]:
    """Train by turns.

    Args:
        devices: ``one``, ``two`` or ``jax``.
        name: Of a model.
        seconds_s: That each training shall take.
    """
    recipe = Recipe(strategy="mirrored", devices=2) if devices == "two" else Recipe()
    # Steps so small are done by one thread as fast, and by several unsteadily.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    strategy = make_strategy(recipe)
    chance = np.random.default_rng(0)

    def made() -> tuple[Any, tuple[int, ...], int]:
        with strategy.scope() if strategy else contextlib.nullcontext():
            model, shape, _kind, batch = MODELS[name]()
        return model, shape, batch

    def data(steps: int) -> dict[str, Any]:
        x = chance.normal(size=(steps * batch, *shape)).astype(np.float32)
        return {"x": x, "y": chance.integers(0, 10, len(x)), "batch_size": batch, "verbose": 0}

    probed, shape, batch = made()
    alone = Clock(Turns(1), 0, PROBE_STEPS, 2)
    _keras(probed, {**data(PROBE_STEPS), "epochs": 2}, alone)
    turn_s, turns = (EPOCH_S, 1) if IS_JAX else (TURN_S, TURNS_PER_EPOCH)
    turn_steps = max(1, round(turn_s / (alone.turns_s[1] / PROBE_STEPS)))
    epochs = max(2, round(seconds_s / turn_s / turns))
    arguments = {**data(turn_steps * turns), "epochs": epochs}
    arms: dict[str, Callable[..., None]] = {"keras": _keras}
    if devices != "two":  # the loop last: it puts its iterator in the place of Keras'
        loop = _loop_on_jax(made) if devices == "jax" else partial(_loop, recipe)
        arms |= {"again": _keras, "loop": loop}
    else:
        for execution in ("graph", "xla"):
            arms[execution] = partial(_loop, replace(recipe, execution=execution))
    clocks = _by_turns(arms, made, arguments, turn_steps)
    return {
        "steps": turn_steps,
        "turns_per_epoch": turns,
        "batch": batch,
        "arms": {arm: clock.turns_s for arm, clock in clocks.items()},
    }


def _by_turns(
    arms: dict[str, Callable[..., None]],
    made: Callable[[], tuple[Any, tuple[int, ...], int]],
    arguments: dict[str, Any],
    turn_steps: int,
) -> dict[str, Clock]:
    turns, count = Turns(len(arms)), arguments["epochs"] * TURNS_PER_EPOCH
    models = [made()[0] for _ in arms]
    kind = EpochClock if IS_JAX else Clock
    clocks = {arm: kind(turns, n, turn_steps, count) for n, arm in enumerate(arms)}

    def run(number: int, arm: str) -> None:
        turns.wait(number)
        arms[arm](models[number], arguments, clocks[arm])

    with ThreadPoolExecutor(len(arms)) as pool:
        for waiting in [pool.submit(run, number, arm) for number, arm in enumerate(arms)]:
            waiting.result()
    return clocks


def _keras(model: Model, arguments: dict[str, Any], clock: Clock) -> None:
    model.fit(**arguments, callbacks=[clock])


def _loop(recipe: Recipe, model: Model, arguments: dict[str, Any], clock: Clock) -> None:
    """As ``tfdyno train`` does it, checkpoints included: events go to a pipe or, here, nowhere."""
    with (
        tempfile.TemporaryDirectory(prefix="tfdyno-bench-") as folder,
        open(os.devnull, "w", encoding="ascii") as nowhere,  # noqa: PTH123
    ):

        def told(line: str) -> None:
            print(f"progress: {line}", file=nowhere, flush=True)

        from tfdyno.runtime.train.loop import train

        plan = TrainPlan(
            recipe=recipe,
            settings=RunSettings(output=folder, save_model=False),
            watch=Watch(told, now=clock.now_s),
            progress=told,
        )
        train(model, {**arguments, "callbacks": [clock]}, plan)


def _loop_on_jax(made: Callable[[], tuple[Any, Any, int]]) -> Callable[..., None]:
    """The same on JAX without checkpoints, which would be written in the turn of another."""

    def loop(_model: Model, arguments: dict[str, Any], clock: Clock) -> None:
        from tfdyno.runtime.train_jax import start
        from tfdyno.runtime.train_jax.loop import JaxTraining, train

        recipe, plan = Recipe(), JaxPlan()
        world = start.begin(plan, recipe, addresses=(), rank=0, gpus=0)
        with open(os.devnull, "w", encoding="ascii") as nowhere:  # noqa: PTH123

            def told(line: str) -> None:
                print(f"progress: {line}", file=nowhere, flush=True)

            training = JaxTraining(recipe=recipe, plan=plan, world=world, progress=told)
            settings = RunSettings(save_model=False)
            train(made()[0], {**arguments, "callbacks": [clock]}, settings, training)

    return loop


if __name__ == "__main__":
    given = sys.argv[1:]
    print(json.dumps(measured(given[0], given[1], float(given[2]))))
