"""What the parts of the trainer do by themselves, all seen in one process with TensorFlow."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf
from tests.runtime import training_models as t

from tfdyno.core.recipe.recipe import Recipe
from tfdyno.runtime.recipe.build import build_for, is_always_full, samples_of
from tfdyno.runtime.recipe.functions import functions_of
from tfdyno.runtime.recipe.replica_values import is_averaged, key_of, times
from tfdyno.runtime.recipe.settle import settle_step, settle_training, taken_over
from tfdyno.runtime.recipe.strategy import make_strategy
from tfdyno.runtime.train.outcome import applied, policies

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value

x, y = t.x, t.y


def values() -> dict[str, Any]:
    rows = tf.IndexedSlices(tf.constant([[2.0], [4.0]]), tf.constant([1, 0]), tf.constant([3, 1]))
    nan = tf.constant([np.nan, 1.0])
    weights = keras.Variable(np.ones(2), name="weights")
    counter = keras.Variable(0, dtype="int32", name="counter")
    summed = keras.Variable(0.0, aggregation="sum", name="summed")
    mean = keras.Variable(0.0, aggregation="mean", name="mean")
    half = times(rows, 0.5)
    return {
        "times": times(tf.constant([2.0]), 3.0).numpy().tolist(),
        "nothing": times(None, 2.0),
        "without_samples": times(nan, 0.0).numpy().tolist(),
        "rows": [half.values.numpy().tolist(), half.indices.numpy().tolist()],
        "half": times(tf.constant([2.0], tf.float16), 0.5).dtype.name,
        "averaged": [is_averaged(v) for v in (weights, counter, summed, mean)],
        "keys": [key_of(weights) == key_of(weights.value), key_of(weights) == key_of(summed)],
    }  # fmt: skip


def strategy() -> dict[str, Any]:
    os.environ.pop("TF_CONFIG", None)
    return {
        "none": [make_strategy(Recipe(strategy=name)) for name in ("", "single")],
        "without": t.said(lambda: make_strategy(Recipe(strategy="multiworker"))),
    }


def settled() -> dict[str, Any]:
    def fields(recipe: Recipe, **how: Any) -> dict[str, Any]:
        model = t.dense(**how)
        notes = settle_training(model, recipe, is_split=False)
        one = getattr(model.optimizer, "inner_optimizer", model.optimizer)
        switches = [model.jit_compile, one.gradient_accumulation_steps]
        with taken_over(model, recipe) as batches:
            inside = [model.jit_compile, one.gradient_accumulation_steps]
        return {
            "notes": notes, "eager": model.run_eagerly, "clip": one.global_clipnorm,
            "several": model.steps_per_execution, "ema": [one.use_ema, one.ema_momentum],
            "overwrite": one.ema_overwrite_frequency, "switches": switches, "inside": inside,
            "batches": batches,
            "back": switches == [model.jit_compile, one.gradient_accumulation_steps],
            "scale": [one.loss_scale_factor, type(model.optimizer).__name__],
            "functions": [model.train_function, model.test_function],
        }  # fmt: skip

    def late(recipe: Recipe) -> str:
        model = t.dense()
        model.fit(x[:8], y[:8], verbose=0)
        return t.said(lambda: settle_training(model, recipe, is_split=False))

    everything = Recipe(
        execution="xla", accumulation=4, clip_norm=0.5, steps_per_execution=3, ema=0.9,
        ema_overwrite=7,
    )  # fmt: skip
    found: dict[str, Any] = {
        "all": fields(everything, run_eagerly=True),
        "nothing": fields(Recipe()),
        "late_ema": late(Recipe(ema=0.9)),
        "late_sums": late(Recipe(accumulation=2)),
        "no_scale": t.said(
            lambda: settle_training(t.dense(), Recipe(loss_scale=64.0), is_split=False)
        ),
        "policy": t.said(lambda: settle_step(t.dense(), Recipe(precision="mixed_bfloat16"))),
    }
    keras.config.set_dtype_policy("mixed_float16")
    found["scaled"] = fields(Recipe(precision="mixed_float16", loss_scale=64.0))
    keras.config.set_dtype_policy("float32")
    return found


def built() -> dict[str, Any]:
    t.begin()
    open_size = tf.data.Dataset.from_generator(
        lambda: iter([(x[:8], y[:8])]),
        output_signature=(tf.TensorSpec((None, 6)), tf.TensorSpec((None, 1))),
    )
    deep = t.dense("sgd", *[keras.layers.Dense(5, "tanh") for _ in range(3)])
    budget = t.said(lambda: t.trained(deep, {"x": open_size}, {"remat": "1KiB"}))
    blind = t.trained(deep, {"x": open_size}, {"remat": "dense*"}).notes
    t.begin()
    model = t.dense("adam", metrics=["mae", "auc"])
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
    build_for(model, data.element_spec)
    names = [
        v.path for v in (*model.variables, *model.optimizer.variables, *model.metrics_variables)
    ]
    model.fit(data, verbose=0)
    after = [
        v.path for v in (*model.variables, *model.optimizer.variables, *model.metrics_variables)
    ]
    whole = tf.data.Dataset.from_tensor_slices((x, y)).batch(8, drop_remainder=True)
    return {
        "budget": budget, "blind": list(blind),
        "same": names == after, "slots": len(model.optimizer.variables),
        "metrics": len(model.metrics_variables),
        "full": [is_always_full(one.element_spec) for one in (data, whole)],
        "samples": [samples_of(data.element_spec, {"x": x, "y": y, "batch_size": 32}),
            samples_of(whole.element_spec, {"x": whole}),
        ],
    }  # fmt: skip


def functions() -> dict[str, Any]:
    t.begin()
    model, wrapped = t.dense(), []
    heard: list[str] = []

    def around(run: Value) -> Value:
        wrapped.append(run)
        return run

    own = {name for name in vars(model) if "function" in name}
    how: dict[str, Any] = {"is_composed": False, "around_train": around,
           "after_train": lambda logs: heard.append(f"after {sorted(logs)}"),
           "before_test": lambda: heard.append("before test")}  # fmt: skip
    with functions_of(model, lambda: None, **how):
        model.fit(x[:16], y[:16], batch_size=8, validation_data=(x[:8], y[:8]), verbose=0)
        evaluated = model.evaluate(x[:8], y[:8], verbose=0)
    with functions_of(model, lambda: None, **how):
        again = model.evaluate(x[:8], y[:8], verbose=0)
    plain, count = model.evaluate(x[:8], y[:8], verbose=0), len(heard)
    with contextlib.suppress(KeyError), functions_of(model, lambda: None, **how):
        raise KeyError
    model.fit(x[:16], y[:16], batch_size=8, verbose=0)
    return {
        "heard": heard, "after_the_block": len(heard) - count, "wrapped": len(wrapped),
        "left": sorted({name for name in vars(model) if "function" in name} ^ own),
        "evaluated": [evaluated == plain, again == plain],
    }  # fmt: skip


def outcome() -> dict[str, Any]:
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        t.begin()
        model = t.dense(t.momentum())
        made = t.trained(
            model, {"x": x[:64], "y": y[:64], "batch_size": 8, "epochs": 2},
            {"accumulation": 4, "clip_norm": 0.5, "ema": 0.9, "execution": "graph"},
            output=folder, keep=2,
        )  # fmt: skip
        again = keras.models.load_model(made.model_path)
        found["whole"] = {
            "counts": [made.epochs, made.steps, made.updates, made.skipped_updates],
            "size": [made.replica_count, made.global_batch_size, made.parameter_count],
            "applied": {one.name: [one.asked, one.reported] for one in made.applied},
            "model": Path(made.model_path).name,
            "apart": t.apart(t.weights(model), t.weights(again)),
            "checkpoints": [Path(one).name for one in made.checkpoints],
            "files": sorted(one.name for one in Path(folder).iterdir()),
            "seed": made.seed, "speed": made.samples_per_s > 0,
            "memory": made.peak_memory_bytes > 0,
        }  # fmt: skip
        found["markers"] = t.markers(Path(folder))
    asked = Recipe(
        precision="tf32", devices=1, threads_inter=3, visible_devices="-1", deterministic=True
    )
    told = applied(model, asked, compiled=False)
    found["process"] = {one.name: [one.asked, one.reported] for one in told}
    saved = keras.DTypePolicy("mixed_float16")
    named = keras.Sequential([keras.layers.Dense(4, dtype=saved), keras.layers.Dense(1)])
    found["policies"] = [policies(named)]
    keras.dtype_policies.DTypePolicyMap(policy_map={"dense": saved}).get_config()
    found["policies"].append(policies(named))
    t.begin()
    model = t.dense(t.momentum())
    with tempfile.TemporaryDirectory() as folder:
        arguments = {"x": x[:64], "y": y[:64], "batch_size": 8, "callbacks": [t.StopAt(3)]}
        stopped = t.trained(model, arguments, output=folder)
        found["stopped"] = [stopped.stopped, stopped.epochs, stopped.steps, stopped.model_path,
                            (Path(folder) / "model.keras").exists()]  # fmt: skip
        found["markers"].append(t.markers(Path(folder))[-1])
    t.begin(policy="mixed_float16")
    targets = y[:64].copy()
    targets[40:48] = 1e6
    made = t.trained(
        t.dense(t.momentum()), {"x": x[:64], "y": targets, "batch_size": 8, "shuffle": False}
    )
    found["overflow"] = [made.steps, made.updates, made.skipped_updates]
    keras.config.set_dtype_policy("float32")
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8).filter(lambda _a, _b: True)
    t.begin()
    made = t.trained(t.dense(t.momentum()), {"x": data, "epochs": 3})
    found["no_length"] = [made.steps, made.updates, made.skipped_updates]
    return found


CASES = {
    "values": values, "strategy": strategy, "settled": settled, "built": built,
    "functions": functions, "outcome": outcome,
}  # fmt: skip

if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(t.run_cases(CASES)))
