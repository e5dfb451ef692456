"""What stands around the steps: orders of arrays, engines, lost numbers, TensorBoard."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf
from keras.src.trainers.data_adapters import get_data_adapter
from tests.runtime import training_models as t

from tfdyno.core.recipe.recipe import Recipe
from tfdyno.runtime.train.engine import Engine
from tfdyno.runtime.train.epochs import order_for, repeats

if TYPE_CHECKING:
    from tfdyno.core.train.training import TrainOutcome

x, y = t.x, t.y


def order() -> dict[str, Any]:
    keras.utils.set_random_seed(9)
    numbers = np.arange(40, dtype="float32")[:, None]

    def drawn(seed: int | None, epochs: list[int]) -> list[list[int]]:
        adapter = get_data_adapter(numbers, batch_size=40, shuffle=True)
        made = order_for(adapter, seed)
        data = made.dataset(adapter) if made else adapter.get_tf_dataset()
        orders = []
        for epoch in epochs:
            if made:
                made.begin(epoch)
            batch = tf.nest.flatten(next(iter(data)))[0]
            orders.append([int(v) for v in batch.numpy().ravel()])
        return orders

    plain = get_data_adapter(numbers, batch_size=40, shuffle=False)
    return {
        "ours": drawn(9, [0, 1, 2]), "again": drawn(9, [2]), "keras": drawn(None, [0, 1]),
        "of_user": order_for(get_data_adapter(numbers, batch_size=4, shuffle=True), 10) is None,
        "unshuffled": order_for(plain, 9) is None,
        "repeats": [repeats(get_data_adapter(numbers, shuffle=True)), repeats(plain)],
    }  # fmt: skip


def drawn_seed() -> dict[str, Any]:
    def losses(**settings: Any) -> tuple[list[float], tuple[str, ...]]:
        t.begin()
        made = t.trained(t.dense(), {"x": x, "y": y, "batch_size": 8, "epochs": 3}, **settings)
        return made.history["loss"], made.notes

    t.begin()
    plain = t.dense().fit(x, y, batch_size=8, epochs=3, verbose=0).history["loss"]
    (own, notes), (anew, anew_notes) = losses(), losses(reshuffle=True)
    return {
        "as_keras": own == plain, "anew": anew != plain, "notes": list(notes),
        "anew_notes": list(anew_notes),
    }  # fmt: skip


def engine() -> dict[str, Any]:
    t.begin()
    model = t.dense("adam")
    one = Engine(model, Recipe(execution="xla", accumulation=4))
    spec = tf.data.Dataset.from_tensor_slices((x, y)).batch(8).element_spec
    one.build(spec, batch_size=8, early=False)
    before = model.optimizer.built
    one.build(spec, batch_size=8, early=True)
    step = one.one_batch()
    for _ in range(5):
        step((tf.constant(x[:8]), tf.constant(y[:8])))
    words = np.array([["a"], ["b"]] * 8)
    inputs = keras.Input((1,), dtype="string")
    looked = keras.layers.StringLookup(vocabulary=["a", "b"], name="words")(inputs)
    hidden = keras.layers.Flatten()(keras.layers.Embedding(3, 4)(looked))
    text = keras.Model(inputs, keras.layers.Dense(1)(hidden))
    text.compile("sgd", "mse", jit_compile=False)
    data = tf.data.Dataset.from_tensor_slices((words, np.arange(16.0)[:, None])).batch(8)
    made = t.trained(text, {"x": data}, {"execution": "xla"})
    blocks = t.dense()
    refused = t.said(lambda: t.trained(
        blocks, {"x": x, "y": y, "batch_size": 8}, {"remat": "no_such_layer"}))  # fmt: skip
    deep = t.dense("sgd", *[keras.layers.Dense(5, "tanh") for _ in range(3)])
    twice = [
        t.trained(deep, {"x": x, "y": y, "batch_size": 8}, {"remat": "dense*"}) for _ in range(2)
    ]
    return {
        "built": [before, model.optimizer.built], "compiled": one.compiled,
        "batches": one.iterations(), "per_iteration": one.accumulation,
        "text": [made.steps, [a.reported for a in made.applied], list(made.notes)],
        "refused": refused, "recomputed": [list(one.notes) for one in twice],
        "left": [
            each.name for each in (*deep._flatten_layers(), deep._functional)
            if {"call", "_run_through_graph"} & vars(each).keys()
        ],
    }  # fmt: skip


def lost() -> dict[str, Any]:
    t.begin()
    data = x.copy()
    data[50, 2] = np.nan
    with tempfile.TemporaryDirectory() as folder:
        arguments = {"x": data, "y": y, "batch_size": 8, "epochs": 2, "shuffle": False}
        made = t.trained(t.dense(), arguments, output=folder, checkpoint_steps=2)
        kept = sorted(one.name for one in Path(folder, "checkpoints").glob("*.json"))
        finding = made.findings[0]
        found = {
            "stopped": made.stopped, "kept": kept, "model": made.model_path,
            "summary": finding.summary, "evidence": [one.text for one in finding.evidence],
            "notes": [note.replace(folder, "") for note in made.notes], "updates": made.updates,
            "skipped": made.skipped_updates,
        }  # fmt: skip
    t.begin()
    made = t.trained(t.dense(), {"x": data, "y": y, "batch_size": 8, "shuffle": False})
    return {**found, "without_folder": [made.stopped, made.findings[0].severity]}


def hidden() -> dict[str, Any]:
    """A relu makes 0 of NaN on a processor: the loss stays a number, the weights do not."""
    data = x.copy()
    data[50, 2] = np.nan

    def run(**settings: Any) -> TrainOutcome:
        t.begin()
        layers = [keras.layers.Dense(5, "relu"), keras.layers.Dense(1, "sigmoid")]
        model = keras.Sequential([keras.Input((6,)), *layers])
        model.compile("adam", "binary_crossentropy", jit_compile=False)
        arguments = {"x": data, "y": y, "batch_size": 8, "epochs": 2, "shuffle": False}
        return t.trained(model, arguments, **settings)

    def told(made: TrainOutcome, folder: str) -> dict[str, Any]:
        paths = Path(folder, "checkpoints").glob("*.json")
        return {
            "stopped": made.stopped, "model": made.model_path, "epochs": made.epochs,
            "losses": made.history["loss"] if made.history else [],
            "kept": sorted(one.name for one in paths),
            "summary": made.findings[0].summary,
            "evidence": [one.text for one in made.findings[0].evidence],
        }  # fmt: skip

    with tempfile.TemporaryDirectory() as folder:
        epoch = told(run(output=folder), folder)
    with tempfile.TemporaryDirectory() as folder:
        saving = told(run(output=folder, checkpoint_steps=2), folder)
    return {"epoch": epoch, "saving": saving, "without_folder": told(run(), "/nowhere")}


def board() -> dict[str, Any]:
    t.begin()
    with tempfile.TemporaryDirectory() as folder:
        arguments = {"x": x, "y": y, "batch_size": 8, "epochs": 2, "validation_data": (x, y)}
        watched = t.trained(t.dense(), arguments, output=folder, tensorboard=True, norms_steps=4)
        tags: dict[str, set[str]] = {}
        for path in Path(folder, "tensorboard").glob("*/events*"):
            for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
                for value in tf.compat.v1.Event.FromString(record).summary.value:
                    tags.setdefault(path.parent.name, set()).add(value.tag)
    t.begin()
    with tempfile.TemporaryDirectory() as folder:
        plain = t.trained(t.dense(), arguments, output=folder)
        has_none = not Path(folder, "tensorboard").exists()
    return {
        "tags": {name: sorted(found) for name, found in tags.items()},
        "same": watched.history == plain.history, "has_none": has_none,
    }  # fmt: skip


CASES = {
    "order": order, "drawn_seed": drawn_seed, "engine": engine, "lost": lost, "hidden": hidden,
    "board": board,
}  # fmt: skip

if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(t.run_cases(CASES)))
