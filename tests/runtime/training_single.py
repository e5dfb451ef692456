"""Trains on one device with ``train`` and with Keras' ``fit``, and through stops and resumes."""

from __future__ import annotations

import contextlib
import functools
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf
from tests.runtime import training_models as t

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfdyno.core.base.untyped import Dataset, Logs, Model, Optimizer, Tensor, Value

x, y = t.x, t.y
ARRAYS = {"x": x, "y": y, "batch_size": 8, "epochs": 3, "validation_data": (x[:20], y[:20])}
"""72 samples: nine batches."""


def network(optimizer: Optimizer = None, **how: Any) -> Model:
    """What a wrong number of draws, of updates or of samples would change."""
    drop, norm = keras.layers.Dropout(0.3), keras.layers.BatchNormalization()
    return t.dense(optimizer or keras.optimizers.Adam(0.02), drop, norm, **how)


class Seen(keras.callbacks.Callback):
    """What a user's callback is told and reads."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[Any] = []

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        rate = float(self.model.optimizer.learning_rate)
        self.told.append([batch, sorted(logs), float(logs["loss"]), rate])

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        self.told.append([epoch, {name: float(value) for name, value in logs.items()}])


def schedules() -> list[Any]:
    return [
        keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.9 if epoch else rate),
        keras.callbacks.ReduceLROnPlateau("val_loss", 0.5, patience=1, min_delta=10.0),
        keras.callbacks.EarlyStopping("loss", patience=2, min_delta=10, restore_best_weights=True),
    ]


def same(
    make: Callable[..., Any],
    arguments: Callable[[], dict[str, Any]],
    *,
    recipe: dict[str, Any] | None = None,
    own: dict[str, Any] | None = None,
    policy: str = "float32",
) -> dict[str, Any]:
    """Whether ``train`` gives the history, the weights and the calls of ``fit``, to the last bit.

    Args:
        make: Builds the model; ``own`` goes to the one that Keras trains.
        arguments: Of ``fit``, made anew for each.
        recipe: Settings.
        own: The same settings in Keras' own words.
        policy: Dtype policy.
    """
    found = []
    for by_keras in (True, False):
        t.begin(policy=policy)
        model, seen = make(**(own or {}) if by_keras else {}), Seen()
        given = arguments()
        given["callbacks"] = [*given.get("callbacks", []), seen]
        if by_keras:
            history = model.fit(**given, verbose=0).history
        else:
            history = t.trained(model, given, recipe).history
        found.append((model, {n: [float(v) for v in h] for n, h in history.items()}, seen.told))
    (one, expected, told), (two, history, heard) = found
    return {
        "history": history == expected, "told": heard == told, "calls": len(told),
        "epochs": len(expected["loss"]), "names": sorted(history),
        "apart": t.apart(t.state(two), t.state(one)),
        "steps": int(getattr(one.optimizer, "inner_optimizer", one.optimizer).iterations),
    }  # fmt: skip


def weighted() -> dict[str, Any]:
    return {**ARRAYS, "sample_weight": t.weight, "validation_split": 0.25, "validation_data": None,
            "initial_epoch": 1}  # fmt: skip


def scheduled() -> dict[str, Any]:
    return {**ARRAYS, "epochs": 6, "class_weight": {0: 1.0, 1: 3.0}, "callbacks": schedules()}


def two_outputs() -> Value:
    inputs = keras.Input((6,))
    hidden = keras.layers.Dense(4, "tanh")(inputs)
    outputs = {name: keras.layers.Dense(1, name=name)(hidden) for name in ("a", "b")}
    model = keras.Model(inputs, outputs)
    losses, shares = {"a": "mse", "b": "mae"}, {"a": 0.3, "b": 2.0}
    model.compile("adam", losses, loss_weights=shares, metrics={"a": ["mae"]}, jit_compile=False)
    return model


class Own(keras.Model):  # type: ignore[misc, unused-ignore]
    """A subclassed model that is built by its first batch, with a step and a metric of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.head = keras.layers.Dense(4, "tanh"), keras.layers.Dense(1)
        self.drop, self.seen = keras.layers.Dropout(0.4), keras.metrics.Mean(name="loss")

    def call(self, inputs: Tensor, training: bool = False) -> Value:
        return self.head(self.drop(self.hidden(inputs), training=training))

    @property
    def metrics(self) -> list[Any]:
        return [self.seen]

    def train_step(self, data: Dataset) -> dict[str, Any]:
        inputs, targets = data
        with tf.GradientTape() as tape:
            loss = keras.ops.mean(keras.ops.abs(self(inputs, training=True) - targets) ** 3)
        variables = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        self.seen.update_state(loss)
        return {"loss": self.seen.result()}


def own_step() -> Value:
    model = Own()
    model.compile("adam", jit_compile=False)
    return model


class Slices(keras.utils.PyDataset):  # type: ignore[misc, unused-ignore]
    """Batches by number, in another order after each epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.order, self.epoch = np.arange(9), 0

    def __len__(self) -> int:
        return 9

    def __getitem__(self, index: int) -> Value:
        rows = slice(8 * self.order[index], 8 * self.order[index] + 8)
        return x[rows], y[rows]

    def on_epoch_end(self) -> None:
        self.epoch += 1
        self.order = np.random.default_rng(self.epoch).permutation(9)


def batches() -> Iterator[Any]:
    """Without an end, and never the same."""
    drawn = np.random.default_rng(3)
    while True:
        rows = drawn.integers(0, t.COUNT, size=8)
        yield x[rows], y[rows]


def dataset(*, length: bool = True) -> Dataset:
    made = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(72, seed=None).batch(8).prefetch(2)
    return made if length else made.filter(lambda a, _b: tf.reduce_sum(a) > -1e9)


DATA: dict[str, Callable[[], dict[str, Any]]] = {
    "arrays": lambda: ARRAYS,
    "dataset": lambda: {"x": dataset(), "epochs": 3, "validation_data": (x[:20], y[:20])},
    "no_length": lambda: {"x": dataset(length=False), "epochs": 3},
    "generator": lambda: {"x": batches(), "epochs": 3, "steps_per_epoch": 9,
                          "validation_data": batches(), "validation_steps": 2},
    "sequence": lambda: {"x": Slices(), "epochs": 3, "validation_data": (x[:20], y[:20])},
    "part_of_epoch": lambda: {"x": dataset().repeat(), "epochs": 3, "steps_per_epoch": 5},
}  # fmt: skip


class StopHere(keras.callbacks.Callback):
    """SIGTERM when the first epoch has ended."""

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        if epoch == 0:
            t.ask_to_stop()


def resumed(
    arguments: Callable[[], dict[str, Any]],
    stops: dict[str, Callable[[], Any]],
    *,
    recipe: dict[str, Any] | None = None,
    policy: str = "float32",
    callbacks: Callable[[], list[Any]] = list,
) -> dict[str, Any]:
    """Whether stopped and resumed trainings end as one that was left alone, to the last bit."""

    def run(*more: Any, **settings: Any) -> tuple[Any, Any]:
        keras.backend.clear_session()
        t.begin(policy=policy)
        model = network()
        given = {**arguments(), "callbacks": [*callbacks(), *more]}
        return model, t.trained(model, given, recipe, save_model=False, **settings)

    whole, expected = run()
    found: dict[str, Any] = {"epochs": len(expected.history["loss"])}
    for name, stop in stops.items():
        with tempfile.TemporaryDirectory() as folder:
            _, first = run(stop(), output=folder)
            told: list[str] = []
            model, second = run(output=folder, resume=True, told=told)
        found[name] = {
            "stopped": first.stopped, "at": first.steps, "from": bool(second.resumed_from),
            "history": second.history == expected.history,
            "apart": t.apart(t.state(model), t.state(whole)),
            "counts": [second.epochs, second.steps, second.updates, second.stopped]
            == [expected.epochs, expected.steps, expected.updates, ""],
            "read": [line for line in told if line.startswith("reading")],
        }  # fmt: skip
    return found


class Killed(keras.callbacks.Callback):
    """Ends the process when the last checkpoint of the training is there."""

    def on_train_end(self, logs: Logs = None) -> None:
        raise LookupError


def ended_early() -> dict[str, Any]:
    """A training that a callback ends, killed right after: nothing is left to train."""

    def run(*more: Any, **settings: Any) -> tuple[Any, Any]:
        keras.backend.clear_session()
        t.begin()
        model, given = network(), scheduled()
        draws = keras.callbacks.LambdaCallback(on_epoch_end=lambda *_given: np.random.random())
        given["callbacks"] += [draws, *more]
        return model, t.trained(model, given, save_model=False, **settings)

    whole, expected = run()
    drawn = np.random.random()
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.suppress(LookupError):
            run(Killed(), output=folder)
        model, second = run(output=folder, resume=True)
    return {
        "random": np.random.random() == drawn,
        "epochs": second.epochs, "history": second.history == expected.history,
        "apart": t.apart(t.state(model), t.state(whole)),
    }  # fmt: skip


def accumulated() -> dict[str, Any]:
    recipe = {"accumulation": 4, "precision": "mixed_float16", "execution": "xla"}
    stop = {"middle": lambda: t.StopAt(13)}
    return resumed(DATA["arrays"], stop, recipe=recipe, policy="mixed_float16")


def several() -> dict[str, Any]:
    """Four steps at a time, of which some are in the middle of an accumulation."""
    recipe = {"accumulation": 3, "steps_per_execution": 4, "execution": "graph"}
    return resumed(DATA["dataset"], {"step": lambda: t.StopAt(13)}, recipe=recipe)


def compiled_own(**how: Any) -> Value:
    more = {"gradient_accumulation_steps": 2, "global_clipnorm": 0.5} if how else {}
    return network(keras.optimizers.Adam(0.02, **more), **how)


AT_STEP: dict[str, Callable[[], Any]] = {"step": lambda: t.StopAt(13)}
CASES: dict[str, Callable[[], Any]] = {
    "scheduled": lambda: same(network, scheduled),
    "weighted": lambda: same(network, weighted),
    "outputs": lambda: same(two_outputs, lambda: {**ARRAYS, "validation_data": None,
                                                  "y": {"a": y, "b": y}, "batch_size": 10}),
    "own_step": lambda: same(own_step, lambda: {**ARRAYS, "validation_data": None}),
    **{name: functools.partial(same, network, DATA[name])
       for name in DATA if name not in ("arrays", "dataset")},
    "recipe": lambda: same(
        compiled_own, DATA["dataset"],
        recipe={"execution": "xla", "accumulation": 2, "clip_norm": 0.5, "steps_per_execution": 4},
        own={"jit_compile": True, "steps_per_execution": 4},
    ),
    "resumed": lambda: resumed(
        DATA["arrays"],
        {**AT_STEP, "validation": lambda: t.StopAt(0, 1)},
        callbacks=lambda: schedules()[:2],
    ),
    **{f"resumed_{name}": functools.partial(resumed, DATA[name], AT_STEP)
       for name in ("no_length", "generator", "part_of_epoch")},
    "resumed_several": several,
    "ended_early": ended_early,
}  # fmt: skip
SLOW: dict[str, Callable[[], Any]] = {
    "last_steps": lambda: resumed(
        DATA["arrays"],
        {"of_epoch": lambda: t.StopAt(9), "of_validation": lambda: t.StopAt(0, 3),
         "of_all": lambda: t.StopAt(27), "epoch_end": StopHere},
        callbacks=lambda: schedules()[:2],
    ),
    **{f"resumed_{name}": functools.partial(resumed, DATA[name], AT_STEP)
       for name in ("dataset", "sequence")},
    "resumed_accumulated": accumulated,
}  # fmt: skip

if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(t.run_cases(CASES, SLOW)))
