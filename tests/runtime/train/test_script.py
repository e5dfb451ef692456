"""Unmodified scripts under a recipe: their fits are taken over, the rest runs for real."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.runtime.trainings import MODEL, Run, all_trained

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf
PLAIN = MODEL + (
    "m = model()\n"
    "history = m.fit(x, y, epochs=2, batch_size=16)\n"
    "print('history', type(history).__name__, history.epoch, len(history.history['loss']))\n"
    "print('evaluated', round(m.evaluate(x, y, verbose=0), 5))\n"
    "print('words', sys.argv[1:], __name__)\n"
    "m.save('mine.keras')\n"
    "sys.exit(0)\n"
)
TWO = MODEL + (
    "first = model(rate=0.02)\n"
    "a = first.fit(x, y, epochs=3, callbacks=[keras.callbacks.EarlyStopping('loss', patience=0,\n"
    "              min_delta=100.0, restore_best_weights=True)])\n"
    "print('after first', keras.ops.sum(first.layers[0].kernel).numpy(), np.random.random())\n"
    "second = model(rate=0.01)\n"
    "b = second.fit(x, y, epochs=2)\n"
    "print('second', ['%.6f' % v for v in b.history['loss']])\n"
    "if 'fail' in sys.argv:\n"
    "    raise RuntimeError('after all')\n"
)
WRITES = MODEL + (
    "m = model()\n"
    "saved = keras.callbacks.ModelCheckpoint('best.weights.h5', save_weights_only=True)\n"
    "m.fit(x, y, epochs=2, callbacks=[saved, keras.callbacks.CSVLogger('log.csv')])\n"
    "m.save('mine.keras')\n"
    "print('went on')\n"
)
FLOAT64 = (
    "import keras\nkeras.backend.set_floatx('float64')\nkeras.utils.set_random_seed(1)\n"
    + MODEL
    + "model().fit(x, y, epochs=2, shuffle=False)\n"
)
TWICE = MODEL + (
    "m = model()\n"
    "m.fit(x, y, shuffle=False)\n"
    "before = float(keras.ops.sum(keras.ops.abs(m.layers[0].kernel)))\n"
    "m.fit(x, y, shuffle=False)\n"
    "print('kept', float(keras.ops.sum(keras.ops.abs(m.layers[0].kernel))) != before)\n"
)
STRATEGY = MODEL + (
    "strategy = tf.distribute.MirroredStrategy(['CPU:0'])\n"
    "print('replicas', strategy.num_replicas_in_sync)\n"
    "with strategy.scope():\n"
    "    m = model()\n"
    "m.fit(x, y, batch_size=16)\n"
    "print('under', type(m.distribute_strategy).__name__)\n"
)
OWN_FIT = MODEL + (
    "class Doubled(keras.Sequential):\n"
    "    def fit(self, x, y, **how):\n"
    "        print('own fit')\n"
    "        return super().fit(x, y, **how)\n"
    "m = Doubled([keras.Input((8,)), keras.layers.Dense(1)])\n"
    "m.compile('sgd', 'mse')\n"
    "m.fit(x, y)\n"
    "print('left', 'fit' in vars(m))\n"
)
FIRST = {"output": "run", "first_weights": "first.npz"}
RUNS = {
    "own_fit": Run(code=OWN_FIT),
    "plain": Run(code=PLAIN, words=("--fast", "1"), settings={"output": "run"}),
    "float64": Run(code=FLOAT64, settings=FIRST),
    "float32": Run(code=FLOAT64, folder="float64", settings=FIRST, recipe={"precision": "float32"}),
    "drawn": Run(code=FLOAT64, settings={"output": "run"}, recipe={"precision": "float32"}),
    "twice": Run(code=TWICE, settings={"first_weights": "first.npz"}),
    "losses": Run(code=WRITES, settings={"only_losses": True}),
    "two": Run(code=TWO, settings={"output": "run"}),
    "again": Run(code=TWO, folder="two", settings={"output": "run", "resume": True}),
    "fails": Run(code=TWO, words=("fail",), settings={"output": "run"}),
    "mirrored": Run(code=STRATEGY, recipe={"strategy": "mirrored", "devices": 2}),
    "own_strategy": Run(code=STRATEGY),
    "no_fit": Run(code=MODEL + "model()\n"),
    "own_loop": Run(code=MODEL + "with tf.GradientTape() as tape:\n    print('ran')\n"),
    "exit": Run(code=MODEL + "sys.exit(4)\n"),
    "swallows": Run(
        code=MODEL + "try:\n    model().fit(x[:0], y[:0])\nexcept Exception:\n    print('hid')\n"
    ),
    "stop": Run(
        code=MODEL + "import os, signal\n"
        "model().fit(x, y)\nos.kill(os.getpid(), signal.SIGTERM)\nprint('went on')\n"
    ),
    "stop_early": Run(
        code="import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\nmodel.fit(x)\n"
    ),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("script")


@pytest.fixture(scope="module")
def found(place: Path) -> dict[str, dict[str, Any]]:
    return all_trained(place, RUNS)


def test_a_script_runs_to_its_end_as_it_is(found: dict[str, Any], place: Path) -> None:
    said = found["plain"]["printed"]
    assert "history History [0, 1] 2\n" in said
    assert "words ['--fast', '1'] __main__\n" in said
    evaluated = float(said.split("evaluated ")[1].split()[0])
    losses = found["plain"]["outcome"]["history"]["loss"]
    assert 0 < evaluated < losses[0]
    assert (place / "plain" / "mine.keras").exists()
    assert "Epoch 1" not in said  # Keras' own bar


def test_where_only_losses_are_wanted_nothing_of_the_scripts_is_written(
    found: dict[str, Any], place: Path
) -> None:
    assert len(found["losses"]["outcome"]["history"]["loss"]) == 2
    assert "went on" not in found["losses"]["printed"]
    assert {one.name for one in (place / "losses").iterdir()} <= {"train.py", "result.json"}


def test_trainings_begin_with_the_same_weights_in_other_types(found: dict[str, Any]) -> None:
    a, b, drawn = (found[name]["outcome"]["history"]["loss"]
                   for name in ("float64", "float32", "drawn"))  # fmt: skip
    assert b == pytest.approx(a, rel=1e-4)
    assert drawn != pytest.approx(a, rel=1e-2)  # by itself it draws others


def test_a_second_fit_begins_with_what_the_first_has_learned(
    found: dict[str, Any], place: Path
) -> None:
    names = ("first.npz", "fit-2-first.npz")
    first, second = (np.load(place / "twice" / name) for name in names)
    assert not np.array_equal(first["arr_0"], second["arr_0"])
    assert "kept True" in found["twice"]["printed"]


def test_a_class_with_a_fit_of_its_own_runs_it_once(found: dict[str, Any]) -> None:
    assert found["own_fit"]["printed"].splitlines() == ["own fit", "left False"]
    assert found["own_fit"]["outcome"]["steps"] == 2


def test_progress_tells_the_stages_and_the_epochs(found: dict[str, Any]) -> None:
    said = found["plain"]["said"]
    assert said[0] == "importing TensorFlow"
    assert said[1].startswith("building ")
    events = [json.loads(line) for line in said if line.startswith("{")]
    assert [e["epoch"] for e in events if e["event"] == "epoch"] == [1, 2]


def test_the_answer_is_the_last_fit_and_the_others_are_named(found: dict[str, Any]) -> None:
    outcome = found["two"]["outcome"]
    assert len(outcome["history"]["loss"]) == 2
    (note,) = [one for one in outcome["notes"] if one.startswith("Fit 1 of 2: 2 epochs, loss ")]
    assert note.endswith(", in run.")
    assert outcome["model_path"] == "run/fit-2/model.keras"


def test_a_finished_fit_is_not_trained_again_and_leaves_the_same(found: dict[str, Any]) -> None:
    twice = found["two"]["printed"] + found["again"]["printed"]
    for kind in ("after first", "second"):
        lines = [line for line in twice.splitlines() if line.startswith(kind)]
        assert len(lines) == 2, twice
        assert lines[0] == lines[1]
    steps = [json.loads(line) for line in found["again"]["said"] if line.startswith("{")]
    assert [one for one in steps if one["event"] in ("steps", "epoch")] == []
    assert found["again"]["outcome"]["history"] == found["two"]["outcome"]["history"]


def test_a_failure_after_the_training_says_what_is_kept(found: dict[str, Any]) -> None:
    text = found["fails"]["refused"]
    assert "line 16: RuntimeError: after all" in text
    assert text.endswith("what was trained is kept in run/fit-2/model.keras.")


def test_the_recipes_strategy_holds_over_the_scripts(found: dict[str, Any]) -> None:
    assert "replicas 2\nunder MirroredStrategy\n" in found["mirrored"]["printed"]
    note = "The code makes a MirroredStrategy; strategy = mirrored of the recipe holds."
    assert note in found["mirrored"]["outcome"]["notes"]


def test_without_one_in_the_recipe_the_script_keeps_its_own(found: dict[str, Any]) -> None:
    assert "replicas 1\nunder MirroredStrategy\n" in found["own_strategy"]["printed"]
    assert not any("holds" in note for note in found["own_strategy"]["outcome"]["notes"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("no_fit", "never calls fit, which is what train takes over; call model.fit, or name"),
        ("own_loop", "trains by a loop of its own (GradientTape), which train cannot take over"),
        ("exit", "stopped before there was a model: it ended with exit code 4"),
        ("swallows", "the data of train is empty"),
    ],
)
def test_what_cannot_be_taken_over_is_told(found: dict[str, Any], name: str, text: str) -> None:
    assert text in found[name]["refused"]
    assert not {"ran", "hid"} & set(found[name]["printed"].split())


def test_a_stop_before_the_training_is_no_failure(found: dict[str, Any]) -> None:
    outcome = found["stop_early"]["outcome"]
    assert (outcome["stopped"], outcome["steps"], outcome["history"]) == ("SIGTERM", 0, {})


def test_a_stop_after_the_training_leaves_the_script(found: dict[str, Any]) -> None:
    outcome = found["stop"]["outcome"]
    assert outcome["stopped"] == "SIGTERM"
    assert "The script was stopped after fit 1" in outcome["notes"][-1]
    assert "went on" not in found["stop"]["printed"]
