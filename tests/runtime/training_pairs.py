"""Trains on two logical devices what one device trains with the whole batch, by Keras alone."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf
from tests.runtime import training_models as t

from tfdyno.core.recipe.recipe import Recipe
from tfdyno.runtime.recipe.strategy import make_strategy

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Dataset, Model, Optimizer, Tensor, Value

x, y = t.x, t.y
strategy = make_strategy(Recipe(strategy="mirrored"))
MIRRORED = {"strategy": "mirrored"}
FEW = {"x": x, "y": y, "batch_size": 16, "epochs": 2, "shuffle": False}
"""72 samples: four batches of 16 and one of 8."""


def both(
    make: Value,
    arguments: dict[str, Any],
    recipe: dict[str, Any],
    *,
    whole: dict[str, Any] | None = None,
    policy: str = "float32",
) -> dict[str, Any]:
    """Our training on two devices beside Keras' own on one.

    Args:
        make: Builds and compiles the model.
        arguments: Of ``fit``.
        recipe: Settings for the two devices.
        whole: Other arguments of ``fit`` on the one device.
        policy: Dtype policy.
    """
    t.begin(policy=policy)
    one = make()
    t.begin(policy=policy)
    with strategy.scope():
        two = make()
    if one.built:
        two.set_weights(one.get_weights())
    expected = one.fit(**{**arguments, **(whole or {}), "verbose": 0}).history
    outcome = t.trained(two, arguments, {**MIRRORED, **recipe})
    history = outcome.history
    return {
        "weights": t.apart(t.weights(two), t.weights(one)),
        "moved": t.apart(t.weights(one), make_again(make, policy)),
        "history": {n: t.apart([history[n]], [expected[n]]) for n in expected if n in history},
        "names": [sorted(history), sorted(expected)],
        "replicas": t.parts_apart(two),
        "updates": [outcome.updates, int(_inner(one).iterations)],
        "steps": outcome.steps,
        "skipped": outcome.skipped_updates,
        "applied": {each.name: each.reported for each in outcome.applied},
    }


def make_again(make: Value, policy: str) -> list[Any]:
    """The weights of a model before its training."""
    t.begin(policy=policy)
    return t.weights(make())


def _inner(model: Model) -> Value:
    return getattr(model.optimizer, "inner_optimizer", model.optimizer)


def whole_batch(execution: str, optimizer: Optimizer) -> dict[str, Any]:
    arguments = {**FEW, "validation_data": (x[:30], y[:30])}
    return both(lambda: t.dense(optimizer()), arguments, {"execution": execution})


def accumulated(execution: str) -> dict[str, Any]:
    """Four batches of 16 are one of 64."""
    arguments = {**FEW, "x": x[:64], "y": y[:64], "epochs": 3}
    recipe = {"execution": execution, "accumulation": 4}
    return both(lambda: t.dense(t.momentum()), arguments, recipe, whole={"batch_size": 64})


def all_at_once() -> dict[str, Any]:
    """Accumulation, clipping, several steps per execution and an average at one time."""
    recipe = {
        "execution": "xla", "accumulation": 2, "clip_norm": 0.05, "steps_per_execution": 4,
        "ema": 0.8, "ema_overwrite": 2,
    }  # fmt: skip
    average = {"use_ema": True, "ema_momentum": 0.8, "ema_overwrite_frequency": 2}
    arguments = {**FEW, "x": x[:64], "y": y[:64], "batch_size": 8, "epochs": 2}
    return both(
        lambda: t.dense(
            t.momentum(**(average if not tf.distribute.has_strategy() else {}),
                       **({"global_clipnorm": 0.05} if not tf.distribute.has_strategy() else {}))
        ),
        arguments, recipe, whole={"batch_size": 16},
    )  # fmt: skip


def clipped() -> dict[str, Any]:
    own = {"global_clipnorm": 0.02}
    return both(
        lambda: t.dense(t.momentum(**({} if tf.distribute.has_strategy() else own))),
        FEW, {"execution": "graph", "clip_norm": 0.02},
    )  # fmt: skip


def average(execution: str) -> dict[str, Any]:
    own = {"use_ema": True, "ema_momentum": 0.8, "ema_overwrite_frequency": 3}
    return both(
        lambda: t.dense(t.momentum(**({} if tf.distribute.has_strategy() else own))),
        FEW, {"execution": execution, "ema": 0.8, "ema_overwrite": 3},
    )  # fmt: skip


def several_steps() -> dict[str, Any]:
    """Nine batches, four at a time, and one that is left over."""
    return both(
        lambda: t.dense("adam"), {**FEW, "batch_size": 8},
        {"execution": "graph", "steps_per_execution": 4},
    )  # fmt: skip


def uneven(execution: str, count: int, **recipe: Any) -> dict[str, Any]:
    arguments = {**FEW, "x": x[:count], "y": y[:count], "sample_weight": t.weight[:count],
                 "validation_data": (x[:count], y[:count])}  # fmt: skip
    return both(lambda: t.dense(t.momentum()), arguments, {"execution": execution, **recipe})


def odd_batches() -> dict[str, Any]:
    """Batches of 15, each whole, are 8 and 7 samples; the last of the validation is one sample."""

    def batches(count: int, size: int, **how: Any) -> Value:
        return tf.data.Dataset.from_tensor_slices((x[:count], y[:count])).batch(size, **how)

    arguments = {"x": batches(72, 15, drop_remainder=True), "epochs": 2,
                 "validation_data": batches(33, 16)}  # fmt: skip
    return both(lambda: t.dense(t.momentum()), arguments, {"execution": "graph"})


def regularized() -> dict[str, Any]:
    """A penalty of the weights and a weight for each class, an uneven batch at the end."""
    more = functools.partial(keras.layers.Dense, 4, kernel_regularizer=keras.regularizers.L2(0.3))
    arguments = {**FEW, "x": x[:51], "y": y[:51], "class_weight": {0: 1.0, 1: 4.0}}
    return both(
        lambda: t.dense(t.momentum(), more(), loss="binary_crossentropy"), arguments,
        {"execution": "graph"},
    )  # fmt: skip


def _with_rows() -> Value:
    """Its gradients are rows of a table, several samples have the same row."""
    inputs = keras.Input((3,), dtype="int32")
    hidden = keras.layers.Flatten()(keras.layers.Embedding(7, 4)(inputs))
    model = keras.Model(inputs, keras.layers.Dense(1)(hidden))
    model.compile(t.momentum(), "mse", jit_compile=False)
    return model


def embedded(count: int, whole: int = 16, **recipe: Any) -> dict[str, Any]:
    tokens = np.random.default_rng(1).integers(0, 7, size=(count, 3))
    arguments = {**FEW, "x": tokens, "y": y[:count]}
    return both(_with_rows, arguments, recipe, whole={"batch_size": whole})


def two_outputs() -> dict[str, Any]:
    """A loss and a weight for each of two outputs, each with a metric."""

    def make() -> Value:
        inputs = keras.Input((6,))
        hidden = keras.layers.Dense(4, "tanh")(inputs)
        outputs = {"a": keras.layers.Dense(1, name="a")(hidden),
                   "b": keras.layers.Dense(1, "sigmoid", name="b")(hidden)}  # fmt: skip
        model = keras.Model(inputs, outputs)
        model.compile(
            t.momentum(), {"a": "mse", "b": "binary_crossentropy"},
            loss_weights={"a": 0.3, "b": 2.0}, metrics={"a": ["mae"], "b": ["accuracy"]},
            jit_compile=False,
        )  # fmt: skip
        return model

    # Keras averages the loss of one output over batches: of even size, these are the samples.
    targets = {"a": x.sum(1, keepdims=True)[:64], "b": y[:64]}
    arguments = {**FEW, "x": x[:64], "y": targets}
    return both(make, arguments, {"execution": "xla"})


class OneUpdate(keras.Model):  # type: ignore[misc, unused-ignore]
    """A train step of its own: a loss that Keras does not know, and a metric that it keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.head = keras.layers.Dense(4, "tanh"), keras.layers.Dense(1)
        self.seen = keras.metrics.Mean(name="cubed")

    def call(self, inputs: Tensor) -> Value:
        return self.head(self.hidden(inputs))

    @property
    def metrics(self) -> list[Any]:
        return [self.seen]

    def train_step(self, data: Dataset) -> dict[str, Any]:
        inputs, targets = data
        with tf.GradientTape() as tape:
            losses = keras.ops.abs(self(inputs, training=True) - targets) ** 3
            replicas = tf.distribute.get_strategy().num_replicas_in_sync
            loss = keras.ops.mean(losses) / replicas
        variables = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        self.seen.update_state(losses)
        return {"cubed": self.seen.result()}


def own_step() -> dict[str, Any]:
    def make() -> Value:
        model = OneUpdate()
        model.compile(t.momentum(), jit_compile=False)
        model(x[:2])
        return model

    arguments = {**FEW, "x": x[:64], "y": y[:64]}
    recipe = {"execution": "xla", "accumulation": 2, "steps_per_execution": 2}
    return both(make, arguments, recipe, whole={"batch_size": 32})


class TwoUpdates(OneUpdate):
    """Two optimizers that take turns within a step, as in a GAN."""

    def compile(self, **how: Any) -> None:
        super().compile(**how)
        self.second = keras.optimizers.SGD(0.05)

    def train_step(self, data: Dataset) -> dict[str, Any]:
        inputs, targets = data
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        for layer, optimizer in ((self.hidden, self.optimizer), (self.head, self.second)):
            with tf.GradientTape() as tape:
                losses = keras.ops.square(self(inputs, training=True) - targets)
                loss = keras.ops.mean(losses) / replicas
            variables = layer.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        self.seen.update_state(losses)
        return {"cubed": self.seen.result()}


def _two_updates() -> Value:
    model = TwoUpdates()
    model.compile(optimizer=t.momentum(), jit_compile=False)
    model(x[:2])
    return model


def two_updates() -> dict[str, Any]:
    arguments = {**FEW, "x": x[:64], "y": y[:64]}
    found = both(_two_updates, arguments, {"execution": "graph"})
    for name, recipe in (
        ("xla", {"execution": "xla"}),
        ("accumulated", {"execution": "graph", "accumulation": 2}),
    ):
        with strategy.scope():
            model = _two_updates()
        found[name] = t.said(functools.partial(t.trained, model, arguments, {**MIRRORED, **recipe}))
    return found


def half_precision() -> dict[str, Any]:
    """With loss scaling, an update from four batches; one device has the same precision."""
    arguments = {**FEW, "x": x[:64], "y": y[:64]}
    return both(
        lambda: t.dense(t.momentum()), arguments, {"execution": "graph", "accumulation": 4},
        whole={"batch_size": 64}, policy="mixed_float16",
    )  # fmt: skip
