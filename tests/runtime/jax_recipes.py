"""Every setting of a recipe on JAX, in one process: beside plain Keras, and gone on with.

``python -m tests.runtime.jax_recipes FD NAME ...`` writes what it found as JSON. The model has
averages of BatchNormalization, a Dropout whose masks are drawn anew in each step, and Adam.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfdyno.core.base.errors import TfdynoError
from tfdyno.core.recipe.recipe import Recipe, from_settings
from tfdyno.core.train.jax_plan import JaxPlan
from tfdyno.core.train.training import RunSettings, TrainOutcome

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Model, Value

EPOCHS, BATCH, SAMPLES = 2, 8, 64
CUT = 11
"""A step in the second epoch, the third batch of an accumulation of 4: what lies behind is lost."""
RECIPES: dict[str, tuple[dict[str, Any], dict[str, Any] | None]] = {
    "clip_norm": ({"clip_norm": 0.01}, {"global_clipnorm": 0.01}),
    "accumulation": ({"accumulation": 4}, {"gradient_accumulation_steps": 4}),
    "ema_overwrite": (
        {"ema": 0.9, "ema_overwrite": 2},
        {"use_ema": True, "ema_momentum": 0.9, "ema_overwrite_frequency": 2},
    ),
    "accumulation_ema": ({"ema": 0.9, "ema_overwrite": 2, "accumulation": 4}, None),
    "steps_per_execution": ({"steps_per_execution": 4}, {"steps_per_execution": 4}),
    "mixed_float16": ({"precision": "mixed_float16"}, {}),
    "loss_scale": (
        {"precision": "mixed_float16", "loss_scale": 1024.0},
        {"loss_scale_factor": 1024.0, "auto_scale_loss": False},
    ),
    "float8": ({"precision": "float8"}, {"quantize": True}),
    "remat": ({"remat": "wide,norm"}, {}),
    "deterministic": ({"deterministic": True}, {}),
    "input": ({"input.prefetch": 3, "input.parallel_calls": 2, "input.cache": True}, {}),
}  # fmt: skip
"""Settings, and what plain Keras is given for the same; None: it means something else there."""

FEW = ("accumulation_ema", "loss_scale", "float8", "remat")
"""Those of the ordinary tests, which take what is tfdyno's own; Keras does the others by itself."""


def found(names: tuple[str, ...]) -> dict[str, Any]:
    """What came of all of them; run in a process of its own."""
    from tfdyno.runtime.train_jax import start

    os.chdir(tempfile.mkdtemp())
    world = start.begin(JaxPlan(), Recipe(seed=3), addresses=(), rank=0, gpus=0)
    plain = _weights(_trained(Recipe(seed=3), world, RunSettings())[0])
    each = {name: _of_recipe(name, world, plain) for name in names}
    return {"recipes": each, "remat": _recomputed(), "refused": _refused(world)}


def _of_recipe(name: str, world: Value, plain: list[Any]) -> dict[str, Any]:
    settings, keras_options = RECIPES[name]
    recipe = from_settings({"seed": 3, **settings})
    kept = RunSettings(output=name, keep=99, checkpoint_steps=1)
    model, outcome = _trained(recipe, world, kept)
    own = _weights(model)
    beside = None if keras_options is None else _by_keras(recipe, keras_options)
    for path in Path(name, "checkpoints").glob("step-*"):
        if int(path.stem.removeprefix("step-")[:9]) > CUT:
            path.unlink()
    again, on = _trained(recipe, world, RunSettings(output=name, resume=True))
    return {
        "apart": None if beside is None else _apart(own, beside),
        "from_plain": _apart(own, plain),
        "from": Path(on.resumed_from).stem,
        "on_apart": _apart(own, _weights(again)),
        "losses": [outcome.history, on.history],
        "counts": [outcome.steps, outcome.updates, outcome.skipped_updates],
        "counts_on": [on.steps, on.updates, on.skipped_updates],
        "applied": {one.name: one.reported for one in outcome.applied},
        "notes": list(outcome.notes),
    }


def _begin(recipe: Recipe) -> None:
    import keras

    from tfdyno.runtime.recipe.apply import policy_of

    keras.backend.clear_session()
    keras.utils.set_random_seed(3)
    keras.config.set_dtype_policy(policy_of(recipe.precision) or "float32")


def _model() -> Model:
    import keras

    layers = keras.layers
    inputs = keras.Input((6,))
    hidden = layers.Dense(16, name="wide")(inputs)
    hidden = layers.BatchNormalization(name="norm")(hidden)
    hidden = layers.Activation("tanh")(hidden)
    hidden = layers.Dropout(0.3, seed=5)(hidden)
    hidden = layers.Dense(16, activation="tanh", activity_regularizer="l2", name="next")(hidden)
    return keras.Model(inputs, layers.Dense(1, dtype="float32", name="head")(hidden), name="small")


def _data() -> Value:
    """A dataset that shuffles, of which the input settings change what is read, not what comes."""
    import tensorflow as tf

    x = np.random.default_rng(1).normal(size=(SAMPLES, 6)).astype("float32")
    pairs = tf.data.Dataset.from_tensor_slices((x, x[:, :1] * 2))
    return pairs.map(lambda a, b: (a * 2, b)).shuffle(SAMPLES, seed=1).batch(BATCH)


def _trained(recipe: Recipe, world: Value, settings: RunSettings) -> tuple[Model, TrainOutcome]:
    import keras

    from tfdyno.runtime.train_jax.loop import JaxTraining, train

    _begin(recipe)
    model = _model()
    model.compile(keras.optimizers.Adam(0.02), "mse")
    training = JaxTraining(recipe=recipe, plan=JaxPlan(), world=world, progress=lambda _line: None)
    return model, train(model, {"x": _data(), "epochs": EPOCHS}, settings, training)


def _by_keras(recipe: Recipe, options: dict[str, Any]) -> list[Any]:
    """The weights that plain ``compile`` and ``fit`` make with the same settings."""
    import keras

    _begin(recipe)
    model, given = _model(), dict(options)
    quantizes, scales = given.pop("quantize", False), given.pop("auto_scale_loss", True)
    several = given.pop("steps_per_execution", 1)
    model.compile(
        keras.optimizers.Adam(0.02, **given), "mse", steps_per_execution=several,
        auto_scale_loss=scales,
    )  # fmt: skip
    if quantizes:
        model.quantize("float8")
    model.fit(_data(), epochs=EPOCHS, verbose=0)
    return _weights(model)


def _weights(model: Model) -> list[Any]:
    """Weights, averages, scales and states of random layers."""
    return [np.asarray(one, "float64") for one in model.variables]


def _apart(a: list[Any], b: list[Any]) -> float:
    if [one.shape for one in a] != [one.shape for one in b]:
        return float("inf")  # float8 has more of them
    return max(float(np.max(np.abs(one - two))) for one, two in zip(a, b, strict=True))


def _recomputed() -> dict[str, int]:
    """Parts of the gradient's program that are computed again, without remat and with it."""
    import jax

    from tfdyno.runtime.remat.rewrite import apply_remat

    _begin(Recipe())
    model = _model()
    model.compile("adam", "mse")
    x = np.ones((BATCH, 6), "float32")

    def loss(weights: Value) -> Value:
        others = [one.value for one in model.non_trainable_variables]
        made, _, losses = model.stateless_call(weights, others, x, training=True,
                                               return_losses=True)  # fmt: skip
        return made.sum() + sum(losses)

    def count() -> int:
        program = jax.make_jaxpr(jax.grad(loss))([one.value for one in model.trainable_variables])
        return str(program).count("checkpoint[") + str(program).count("remat2[")

    before = count()
    plan = apply_remat(model, "wide,norm", batch_size=BATCH)
    during = count()
    plan.undo()
    return {"before": before, "during": during, "after": count()}


def _refused(world: Value) -> dict[str, str]:
    """Sentences of what cannot be."""
    import keras

    from tfdyno.runtime.train_jax.loop import JaxTraining, train

    def said(settings: dict[str, Any], arguments: dict[str, Any], *, built: bool = True) -> str:
        recipe = from_settings({"seed": 3, **settings})
        _begin(recipe)
        model = _model() if built else keras.Sequential([keras.layers.Dense(1)])
        model.compile("adam", "mse")
        training = JaxTraining(
            recipe=recipe, plan=JaxPlan(), world=world, progress=lambda _line: None
        )
        try:
            train(model, arguments, RunSettings(), training)
        except TfdynoError as error:
            return str(error)
        return ""

    arrays = {"x": np.ones((8, 6), "float32"), "y": np.ones((8, 1), "float32")}
    return {
        "input": said({"input.prefetch": 2}, arrays),
        "float8": said({"precision": "float8"}, arrays, built=False),
        "loss_scale": said({"loss_scale": 8.0}, arrays),
    }


if __name__ == "__main__":
    with os.fdopen(int(sys.argv[1]), "w") as told:
        json.dump(found(tuple(sys.argv[2:])), told)
