"""rules/jax/judge: each thing that was measured to fail on JAX is named, and what runs is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.rules.jax.judged import HEAD, answer, causes, layer, places
from tests.rules.languages import check_languages

from tfdyno.rules.jax.project import causes as all_causes
from tfdyno.rules.jax.project import effect_of

DATA = HEAD + "ds = tf.data.Dataset.from_tensor_slices(x)\n"
STOPS = {
    "operation": layer("return tf.nn.relu(x)"),
    "by_hand": layer("return tf.linalg.band_part(x, -1, 0)"),
    "random": layer("return x + tf.random.normal(tf.shape(x))"),
    "own_loop": HEAD + "with tf.GradientTape() as tape:\n    pass\n",
    "loop_function": HEAD + "model = keras.Sequential()\n@tf.function\ndef f(x):\n"
    "    return model(x)\n",
    "tf_function": HEAD + "class A(keras.Layer):\n    @tf.function\n    def call(self, x):\n"
    "        return x\n",
    "train_step": HEAD + "class A(keras.Model):\n    def train_step(self, data):\n        pass\n",
    "variable": layer("return x * self.w", init="self.w = tf.Variable(1.0)"),
    "tensor_method": layer("return x * x.shape.as_list()[1]"),
    "metric_result": HEAD + "class A(keras.metrics.Metric):\n    def result(self):\n"
    "        return self.total\n",
    "list_operand": layer("return x * [1.0, 2.0]"),
    "outside": HEAD + "weights = tf.constant([1.0, 2.0])\ndef near(y_true, y_pred):\n"
    "    return keras.ops.mean(weights * (y_true - y_pred))\n",
    "branch": layer("if keras.ops.sum(x) > 0:", "    return x", "return -x"),
    "in_dataset": DATA + "ds = ds.map(lambda a: keras.ops.mean(a))\n",
    "standardize": HEAD + "def own(t):\n    return tf.strings.lower(t)\n"
    "v = keras.layers.TextVectorization(standardize=own)\n",
    "strings": HEAD + 'i = keras.Input((1,), dtype="string")\n',
    "saved": HEAD + "model = keras.Sequential()\ntf.saved_model.save(model, 'a')\n",
    "cluster": HEAD + "s = tf.distribute.MultiWorkerMirroredStrategy()\n",
    "backend_set": "import os\nos.environ['KERAS_BACKEND'] = 'tensorflow'\nimport keras\n"
    "m = keras.Sequential()\n",
    "keras2": "import tf_keras\nimport keras\nm = keras.Sequential()\n",
    "no_keras": "import tensorflow as tf\nw = tf.Variable(1.0)\n",
    "print": layer("tf.print(x)", "return x"),
    "seed": HEAD + "tf.random.set_seed(1)\n",
    "one_card": HEAD + "s = tf.distribute.MirroredStrategy()\n",
    "new_shapes": DATA + "ds = ds.padded_batch(4)\n",
    "settings": HEAD + "tf.config.optimizer.set_jit(True)\n",
    "unread": HEAD + "import tensorflow_addons as tfa\n",
    "unread_function": HEAD + "class A:\n    @tf.function\n    def serve(self, x):\n"
    "        return self.model(x)\n",
    "unknown": HEAD + "m = tf.saved_model.load('a')\n",
}
MOVES = {
    "a step that Keras makes": HEAD + "class A(keras.Model):\n"
    "    def make_train_function(self, force=False):\n"
    "        super().make_train_function(force)\n",
    "operations in a data set": DATA
    + "ds = ds.map(lambda a: tf.nn.relu(tf.cast(a, tf.float32)))\n",
    "a function of a data set": DATA + "@tf.function\ndef f(a):\n"
    "    return tf.image.resize(a, (2, 2))\n"
    "ds = ds.map(f)\n",
    "operations on what is predicted": HEAD + "m = keras.Sequential()\n"
    "print(tf.argmax(m.predict(x), axis=1).numpy())\n",
    "types and shapes in a layer": layer("return keras.ops.cast(x, tf.float32)[..., tf.newaxis]"),
    "flags in a layer": layer("if self.flag and x.shape[1] > 2:", "    return x", "return -x"),
    "summaries in a callback": HEAD + "class A(keras.callbacks.Callback):\n"
    "    def on_epoch_end(self, epoch, logs=None):\n"
    "        tf.summary.scalar('loss', logs['loss'], epoch)\n",
    "initializers": HEAD + "d = keras.layers.Dense(3, kernel_initializer=tf.zeros_initializer())\n",
    "layers that prepare data": DATA + "flip = keras.layers.RandomFlip()\n"
    "ds = ds.map(lambda a: flip(a))\n",
    "lookups in a data set": DATA + "v = keras.layers.TextVectorization(10)\nds = ds.map(v)\n",
    "numbers of a data set": DATA + "for a in ds.take(1):\n    print(a.numpy())\n",
    "what another backend runs": HEAD + "class A(keras.Model):\n"
    "    def train_step(self, *args):\n"
    "        if keras.backend.backend() == 'tensorflow':\n            return self.by_tape(*args)\n"
    "        elif keras.config.backend() == 'jax':\n            return self.by_jax(*args)\n"
    "    def by_tape(self, data):\n        with tf.GradientTape() as tape:\n"
    "            return tf.reduce_sum(data)\n"
    "    def by_jax(self, state, data):\n        return state\n",
    "a method that is asked for": HEAD + "m = keras.Sequential()\ny = m(x)\n"
    "print(y.numpy() if hasattr(y, 'numpy') else y)\n",
    "a guard": HEAD + "if keras.__version__ < '3':\n    tf.random.set_seed(1)\n"
    "m = keras.Sequential()\n",
    "names of Keras under tf": "import tensorflow as tf\n"
    "m = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n",
    "well-known packages": HEAD + "import numpy as np, pandas, sklearn.metrics, json\n",
    "seeded numbers": layer("return x + keras.random.normal((2,), seed=self.seed)"),
    "python in a data set": DATA + "def f(a):\n    return keras.ops.convert_to_numpy(a)\n"
    "ds = ds.map(lambda a: tf.py_function(f, [a], tf.float32))\n",
}  # fmt: skip


@pytest.mark.parametrize("cause", STOPS)
def test_a_cause_is_named(cause: str) -> None:
    assert cause in [one for _, one in causes(STOPS[cause])]
    assert answer(STOPS[cause]) == {
        "stops": "after_migrate" if all(p.is_safe for p in places(STOPS[cause])) else "rewrite",
        "results": "moves", "speed": "moves", "unknown": "unknown",
    }[effect_of(cause)]  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
def test_what_runs_on_jax_is_left_alone(name: str) -> None:
    assert [one for one in places(MOVES[name]) if one.effect in ("stops", "unknown")] == []
    assert answer(MOVES[name]) == "moves"


def test_every_cause_has_an_example_and_says_its_effect_first() -> None:
    leads = {"stops": "Stops the move: ", "results": "Changes results: ",
             "speed": "Only costs speed: ", "unknown": "Unknown: "}  # fmt: skip
    assert {one.id.partition(".")[2] for one in all_causes()} == set(STOPS)
    for one in all_causes():
        assert one.title.en.startswith(leads[effect_of(one.id.partition(".")[2])])
        for words in (one.title, one.why, *(step.text for step in one.fix)):
            if words:
                check_languages(words)


def test_the_page_names_every_cause() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "move-to-jax.md").read_text()
    assert [one.id for one in all_causes() if f"`{one.id}`" not in page] == []


@pytest.mark.parametrize(
    "source",
    [
        HEAD + "import importlib\nm = importlib.import_module(name)\n",
        HEAD + "exec(text)\n",
        HEAD + "op = getattr(tf.nn, name)\n",
        HEAD + "import some_layers\n",
        HEAD + "import official.vision\n",
        HEAD + "import tensorflow_hub as hub\n",
        HEAD + "from .beside import layer\n",
    ],
)
def test_what_cannot_be_read_is_unknown_and_never_well(source: str) -> None:
    assert answer(source) == "unknown"


def test_a_loss_of_another_file_is_judged_by_its_use() -> None:
    train = "import keras\nfrom losses import near\nm = keras.Sequential()\nm.compile(loss=near)\n"
    losses = "import tensorflow as tf\ndef near(a, b):\n    return helper(a - b)\n"
    losses += "def helper(d):\n    return tf.reduce_mean(d)\n"
    assert causes(train, losses=losses) == [("losses.py:5", "operation")]
    prepare = "import keras, tensorflow as tf\nfrom losses import near\n"
    prepare += "ds = tf.data.Dataset.range(3).map(near)\n"
    assert causes(prepare, losses=losses) == []


def test_a_function_of_both_kinds_is_left_to_a_person() -> None:
    source = DATA + "def scale(a):\n    return tf.square(a)\nds = ds.map(scale)\n"
    source += "layer = keras.layers.Lambda(scale)\n"
    (one,) = places(source)
    assert (one.source, one.cause, one.is_safe) == ("train.py:5", "move.by_hand", False)
    assert "must stay TensorFlow's" in one.instead


@pytest.mark.parametrize(
    ("line", "is_safe"),
    [
        ("return tf.reshape(x, (tf.shape(x)[0], -1))", True),
        ("return tf.reshape(x, tf.concat([tf.shape(x)[:-1], [3]], 0))", False),
        ("return tf.zeros(tf.shape(x))", True),
        ("return tf.shape(x) * 2", False),
        ("return tf.split(x, [1, 2], axis=-1)", False),
        ("return tf.split(x, 2, axis=-1)", True),
        ("values, places = tf.math.top_k(x, 2)", True),
        ("return tf.math.top_k(x, 2).indices", False),
    ],
)
def test_shapes_are_rewritten_where_single_numbers_of_them_are_taken(
    line: str, is_safe: bool
) -> None:
    assert all(one.is_safe for one in places(layer(line))) == is_safe


@pytest.mark.parametrize(
    ("lines", "is_found"),
    [
        (["return x[x > 0]"], True),
        (["mask = tf.not_equal(x, 0)", "return x[mask]"], True),
        (["return x[:, 0] * x[..., 1]"], False),
        (["flags = self.flags", "return x[flags]"], False),
    ],
)
def test_what_a_condition_picks_is_left_to_a_person(lines: list[str], is_found: bool) -> None:
    found = [one for one in places(layer(*lines)) if one.name == "x[condition]"]
    assert bool(found) == is_found
    assert not any(one.is_safe for one in found)


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        ("for p in m(x): print(p.numpy())", True),
        ("for i, p in enumerate(m(x)): print(p.numpy())", True),
        ("for w in m.weights: print(w.numpy())", False),
        ("print(m.trainable_variables[0].numpy())", False),
        ("print(m(x)[0].numpy())", True),
    ],
)
def test_numbers_are_asked_of_arrays_and_of_variables(line: str, is_found: bool) -> None:
    found = causes(f"{HEAD}m = keras.Sequential()\n{line}\n")
    assert found == ([("train.py:4", "tensor_method")] if is_found else [])


def test_a_notebook_is_judged_cell_by_cell() -> None:
    import json

    from tfdyno.rules.jax.project import judged, obstacles

    cells = [HEAD, "%matplotlib inline\n" + layer("return tf.nn.relu(x)").removeprefix(HEAD)]
    text = json.dumps({"cells": [{"cell_type": "code", "source": one} for one in cells]})
    found, notes = judged(["a.ipynb"], lambda _name: text)
    assert notes == ()
    assert [one.source for one in obstacles(found)] == ["a.ipynb, cell 2, line 4"]
