"""The cases of two logical devices, under one strategy: TensorFlow has room for no other."""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime import training_models as t
from tests.runtime import training_pairs as pairs
from tests.runtime.training_pairs import FEW, MIRRORED, strategy

from tfdyno.runtime.recipe.composed_step import ComposedStep

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Logs, Optimizer, Value

x, y = t.x, t.y
RATE = 0.125


def overflow() -> dict[str, Any]:
    """The gradient of the third batch is too large for float16, on the second device alone."""
    targets = y[:64].copy()
    targets[40:48] = 1e6
    t.begin(policy="mixed_float16")
    with strategy.scope():
        model = t.dense(t.momentum(), loss="mse")
    seen: list[Any] = []

    def keep(batch: int, logs: Logs) -> None:
        seen.append(t.weights(model))

    callback = keras.callbacks.LambdaCallback(on_train_batch_end=keep)
    arguments = {**FEW, "x": x[:64], "y": targets, "epochs": 1, "callbacks": [callback]}
    outcome = t.trained(model, arguments, {**MIRRORED, "execution": "xla"})
    kept = t.weights(model)
    t.begin(policy="mixed_float16")
    with strategy.scope():
        plain = t.dense(t.momentum(), loss="mse")
    try:
        plain.fit(**{**arguments, "callbacks": []}, verbose=0)
        spoiled = sum(int(~np.isfinite(w).all()) for w in t.weights(plain))
        keras_said = f"{spoiled} weights not finite"
    except Exception as error:
        keras_said = type(error).__name__
    return {
        "steps_apart": [t.apart(a, b) for a, b in itertools.pairwise(seen)],
        "finite": all(np.isfinite(w).all() for w in kept),
        "replicas": t.parts_apart(model),
        "skipped": outcome.skipped_updates,
        "counts": [outcome.steps, outcome.updates],
        "scale": float(np.asarray(model.optimizer.dynamic_scale)),
        "keras": keras_said,
    }


def float8() -> dict[str, Any]:
    """Under a strategy of the user's own code, of which the recipe knows nothing."""
    t.begin(policy="mixed_bfloat16")
    with strategy.scope():
        model = t.dense()
    return {"said": t.said(lambda: t.trained(model, FEW, {"precision": "float8"}))}


def moving_averages() -> dict[str, Any]:
    """The mean of the means of both replicas is that of the whole batch, uneven or not."""
    models = []
    for where in ("one", "two"):
        t.begin()
        if where == "one":
            model = keras.Sequential(
                [
                    keras.Input((6,)),
                    keras.layers.BatchNormalization(momentum=0.5),
                    keras.layers.Dense(1),
                ]
            )
            model.compile(t.momentum(), "mse", jit_compile=False)
            model.fit(x[:51], y[:51], batch_size=16, epochs=2, shuffle=False, verbose=0)
        else:
            with strategy.scope():
                model = keras.Sequential(
                    [
                        keras.Input((6,)),
                        keras.layers.BatchNormalization(momentum=0.5),
                        keras.layers.Dense(1),
                    ]
                )
                model.compile(t.momentum(), "mse", jit_compile=False)
            t.trained(model, {**FEW, "x": x[:51], "y": y[:51]}, {**MIRRORED, "execution": "xla"})
        models.append(model)
    means = [[np.asarray(m.layers[0].moving_mean)] for m in models]
    return {"means": t.apart(*means), "size": float(np.abs(means[0]).max()),
            "replicas": t.parts_apart(models[1])}  # fmt: skip


def masks() -> dict[str, Any]:
    """What each replica has summed up shows which of its inputs were dropped."""
    t.begin()
    with strategy.scope():
        model = keras.Sequential(
            [keras.Input((64,)), keras.layers.Dropout(0.5), keras.layers.Dense(1, use_bias=False)]
        )
        model.compile("sgd", "mse")
        model.build((None, 64))
        model.optimizer.build(model.trainable_variables)
        step = ComposedStep(model, compiled=False, accumulation=8)
    data = tf.data.Dataset.from_tensors((np.ones((2, 64), "f"), np.ones((2, 1), "f"))).repeat(3)
    iterator, run = iter(strategy.experimental_distribute_dataset(data)), step.train_function()
    sums = [[np.zeros(64), np.zeros(64)]]
    for _ in range(3):
        run(iterator)
        sums.append([np.asarray(part).ravel() for part in step.variables[2].values])
    drops = [
        [(b == a).tolist() for a, b in zip(*two, strict=True)] for two in itertools.pairwise(sums)
    ]
    flat = [tuple(each) for two in drops for each in two]
    seeds = next(v for v in model.variables if "seed" in v.path)
    return {"different": len(set(flat)), "share": float(np.mean(flat)),
            "seed": [np.asarray(part).tolist() for part in seeds.value.values]}  # fmt: skip


def weighting() -> dict[str, Any]:
    """Any number of samples on any replica in any batch: each sample counts the same."""
    t.begin()
    with strategy.scope():
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, use_bias=False)])
        model.compile(keras.optimizers.SGD(RATE), "mse")
        model.optimizer.build(model.trainable_variables)
        steps = {n: ComposedStep(model, compiled=False, accumulation=n) for n in (1, 2, 3)}
    functions = {n: step.train_function() for n, step in steps.items()}
    sizes = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=2)
    seen: list[int] = []

    @settings(max_examples=40, deadline=None, database=None, derandomize=True)
    @given(st.sampled_from(sorted(steps)), sizes, st.integers(0, 2**16))
    def check(accumulation: int, rounds: list[tuple[int, int]], seed: int) -> None:
        drawn = np.random.default_rng(seed)
        weights = np.ones((2, 1))
        model.trainable_variables[0].assign(weights)
        for sizes_of in rounds:
            inputs, targets = np.zeros((0, 2)), np.zeros((0, 1))
            batches = []
            for number in range(accumulation):
                # The sizes take turns, so that the replicas have most in turns.
                counts = sizes_of if number % 2 else sizes_of[::-1]
                batch = [(drawn.normal(size=(n, 2)), drawn.normal(size=(n, 1))) for n in counts]
                inputs = np.concatenate([inputs, *(part[0] for part in batch)])
                targets = np.concatenate([targets, *(part[1] for part in batch)])
                batches.append(_on_replicas(batch))
            iterator = iter(batches)
            for _ in batches:
                functions[accumulation](iterator)
            seen.append(len(inputs))
            if len(inputs):
                gradient = 2 * inputs.T @ (inputs @ weights - targets) / len(inputs)
                weights = weights - RATE * gradient
            np.testing.assert_allclose(t.weights(model)[0], weights, rtol=1e-5, atol=1e-6)

    check()
    return {"examples": len(seen), "empty": seen.count(0), "most": max(seen)}


def _on_replicas(batch: list[tuple[Any, Any]]) -> Value:
    def part(context: Value) -> Value:
        return tuple(
            tf.constant(each, tf.float32) for each in batch[context.replica_id_in_sync_group]
        )

    return strategy.experimental_distribute_values_from_function(part)


def resumed(policy: str, optimizer: Optimizer, **recipe: Any) -> dict[str, Any]:
    """Stopped in the middle of an epoch, with random layers and moving averages."""
    recipe = {**MIRRORED, "execution": "graph", "clip_norm": 0.5, **recipe}
    arguments = {**FEW, "shuffle": True, "validation_data": (x[:20], y[:20])}

    def run(*callbacks: Any, **how: Any) -> tuple[Any, Any]:
        keras.backend.clear_session()
        t.begin(policy=policy)
        with strategy.scope():
            more = keras.layers.Dropout(0.3), keras.layers.BatchNormalization()
            model = t.dense(optimizer(), *more)
        given = {**arguments, "callbacks": list(callbacks)}
        return model, t.trained(model, given, recipe, save_model=False, **how)

    whole, expected = run()
    with tempfile.TemporaryDirectory() as folder:
        _, first = run(t.StopAt(6), output=folder)
        model, second = run(output=folder, resume=True)
    names = expected.history
    return {
        "at": first.steps, "apart": t.apart(t.state(model), t.state(whole)),
        "history": max(t.apart([second.history[n]], [names[n]]) for n in names),
        "replicas": t.parts_apart(model), "updates": [second.updates, expected.updates],
    }  # fmt: skip


def as_two_workers() -> dict[str, Any]:
    """What two processes do in ``training_workers``."""
    t.begin()
    with strategy.scope():
        model = t.dense(t.momentum())
    outcome = t.trained(model, t.FOR_WORKERS, {**MIRRORED, **t.WORKERS_RECIPE})
    return {"history": outcome.history, "weights": [w.ravel().tolist() for w in t.weights(model)]}


CASES = {
    "float8": float8,
    "all_at_once": pairs.all_at_once,
    "no_samples": lambda: pairs.uneven("xla", 33),
    "odd_batches": pairs.odd_batches,
    "regularized": pairs.regularized,
    "embedded": lambda: pairs.embedded(51, execution="graph"),
    "two_outputs": pairs.two_outputs,
    "own_step": pairs.own_step,
    "two_updates": pairs.two_updates,
    "overflow": overflow,
    "masks": masks,
    "weighting": weighting,
    "as_two_workers": as_two_workers,
}
SLOW = {
    "graph_momentum": lambda: pairs.whole_batch("graph", t.momentum),
    "uneven": lambda: pairs.uneven("graph", 51),
    "moving_averages": moving_averages,
    "several_steps": pairs.several_steps,
    "xla_adam": lambda: pairs.whole_batch("xla", lambda: keras.optimizers.Adam(0.05)),
    "accumulated": lambda: pairs.accumulated("graph"),
    "accumulated_xla": lambda: pairs.accumulated("xla"),
    "clipped": pairs.clipped,
    "average": lambda: pairs.average("graph"),
    "no_samples_several_steps": lambda: pairs.uneven("graph", 33, steps_per_execution=2),
    "embedded_accumulated": lambda: pairs.embedded(64, 64, execution="xla", accumulation=4),
    "half_precision": pairs.half_precision,
    "resumed": lambda: resumed("float32", lambda: keras.optimizers.Adam(0.02)),
    "resumed_within_update": lambda: resumed(
        "mixed_float16", t.momentum, accumulation=4, precision="mixed_float16", ema=0.9
    ),
}

if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(t.run_cases(CASES, SLOW)))
