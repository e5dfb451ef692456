"""Trainings that are not the usual ones, looked at in place: what they need must not break."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.looks import START, STEP, Looks, Training, facts_of, middle

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.measure.step_facts import StepFacts

pytestmark = pytest.mark.tf
HERE = "import os\nhere = os.path.dirname(os.path.abspath(__file__))\n"
DATA = "data = tf.data.Dataset.from_tensor_slices((x, y)).batch(20)\n"
PRECIOUS = (
    "for name in ('model.keras', 'own.keras', 'ck.index'):\n"
    "    open(f'{here}/{name}', 'w').write('precious')\n"
)
RAGGED = (
    "xs = tf.ragged.constant([[1., 2, 3, 4, 5]] * 100 + [[1., 2, 3]] * 100)\n"
    "data = tf.data.Dataset.from_tensor_slices((xs, y)).batch(20).repeat()\n"
    "w = tf.Variable(1.0)\n"
    "@tf.function\n"
    "def step(source):\n"
    "    a, b = next(source)\n"
    "    with tf.GradientTape() as tape:\n"
    "        loss = tf.reduce_mean((tf.reduce_sum(a, 1)[:, None] * w * 1e-3 - b) ** 2)\n"
    "    w.assign_sub(0.01 * tape.gradient(loss, w))\n"
    "source = iter(data)\n"
    "while True:\n"
    "    step(source)\n"
)
ONCE = (
    "class Ends(keras.Sequential):\n"
    "    def train_step(self, data):\n"
    "        if self.stop_training:\n"  # the training has ended
    "            raise IndexError('no more')\n"
    "        return super().train_step(data)\n"
    "m = Ends([keras.Input((8,)), keras.layers.Dense(4)])\n"
    "m.compile('sgd', 'mse', run_eagerly=True)\n"
    "m.fit(x, y, batch_size=20, epochs=12, verbose=0)\n"
)
OPEN = (
    "def some():\n"
    "    for _ in range(100):\n"
    "        time.sleep(0.1)\n"
    "        yield x[:20], y[:20]\n"
    "spec = tf.TensorSpec((None, 8)), tf.TensorSpec((None, 4))\n"
    "seen = tf.data.Dataset.from_generator(some, output_signature=spec)\n"
    "model().fit(x, y, batch_size=2, validation_data=seen)\n"
)
TWO = (
    "other = model()\n"
    "@tf.function\n"
    "def second(a):\n"
    "    wide = tf.fill((500, 500), a[0, 0])\n"  # constants would be multiplied only once
    "    for _ in range(3):\n"
    "        wide = wide @ wide * 1e-3\n"
    "    return tf.reduce_sum(wide)\n"
    "for a, b in data.repeat():\n"
    "    step(a, b)\n"
    "    second(a)\n"
)
VALIDATES = (
    "@tf.function\n"
    "def check(a, b):\n"
    "    return tf.reduce_mean((m(a) - b) ** 2)\n"
    "small = tf.data.Dataset.from_tensor_slices((x, y)).batch(4)\n"
    "for epoch in range(100_000):\n"
    "    for a, b in data:\n"
    "        step(a, b)\n"
    "    for a, b in small:\n"
    "        check(a, b)\n"
)
SAVES = (
    HERE + PRECIOUS + "kept = tf.train.CheckpointManager(\n"
    "    tf.train.Checkpoint(m=m), here + '/ck', max_to_keep=1)\n"
    "count = 0\n"
    "while True:\n"
    "    step(x[:20], y[:20])\n"
    "    count += 1\n"
    "    if count % 10 == 0:\n"
    "        kept.save()\n"
    "        keras.saving.save_model(m, here + '/model.keras')\n"
)
ON_BATCH = (
    "m = model()\n"
    "while True:\n"
    "    for _ in range(10):\n"
    "        m.train_on_batch(x[:16], y[:16])\n"
    "    m.evaluate(x, y, batch_size=4, verbose=0)\n"
)
TWO_MODELS = (  # so wide that most of a step is their work, however busy the machine is
    "def wide():\n"
    "    m = keras.Sequential([keras.Input((8,))])\n"
    "    m.add(keras.layers.Dense(2000))\n"
    "    m.add(keras.layers.Dense(2000))\n"
    "    m.add(keras.layers.Dense(4))\n"
    "    m.compile('sgd', 'mse')\n"
    "    return m\n"
    "m, other = wide(), wide()\n"
    "while True:\n"
    "    m.train_on_batch(x[:16], y[:16])\n"
    "    other.train_on_batch(x[:16], y[:16])\n"
)
ACTS = (
    "m = model()\n"
    "while True:\n"
    "    m.predict(x[:16], verbose=0)\n"
    "    m.train_on_batch(x[:16], y[:16])\n"
)


def at_least(steps: int) -> dict[str, Any]:
    """Limits of a look at so many steps, however slow the machine is."""
    return {"least_steps": steps, "most_s": 300.0}


RUNS = {
    "table": Training(
        code=START
        + "rates = [0.1, 0.05, 0.01]\n"
        + "last = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: rates[epoch])\n"
        + "class All(keras.callbacks.Callback):\n"
        + "    def on_epoch_begin(self, epoch, logs=None):\n"
        + "        assert self.params['epochs'] == 3\n"
        + "rate = keras.callbacks.LearningRateScheduler(lambda epoch: rates[epoch])\n"
        + "model().fit(x, y, batch_size=20, epochs=3, callbacks=[rate, [last, All()]])\n",
        limits=at_least(31),
    ),
    "resumed": Training(
        code=START + "model().fit(x, y, batch_size=20, initial_epoch=2, epochs=4)\n",
        limits=at_least(21),
    ),
    "early": Training(
        code=START
        + "stop = keras.callbacks.EarlyStopping('loss', patience=0, min_delta=1e9)\n"
        + "model().fit(x, y, batch_size=20, epochs=5, callbacks=stop)\n",
        limits=at_least(51),
    ),
    "list": Training(
        code=START
        + "class Slow(keras.callbacks.Callback):\n"
        + "    def on_train_batch_end(self, batch, logs=None):\n"
        + "        time.sleep(0.004)\n"
        + "m = model()\n"
        + "every = keras.callbacks.CallbackList([Slow()], add_history=True, model=m)\n"
        + "m.fit(x, y, batch_size=20, callbacks=every)\n",
        limits=at_least(31),
    ),
    "ragged": Training(code=START + RAGGED),
    "sparse": Training(
        code=START
        + "data = tf.data.Dataset.from_tensor_slices((tf.sparse.from_dense(x), y)).batch(20)\n"
        + "m = keras.Sequential([keras.Input((8,), sparse=True), keras.layers.Dense(4)])\n"
        + "m.compile('sgd', 'mse')\n"
        + "m.fit(data)\n"
    ),
    "once": Training(code=START + ONCE),
    "open": Training(code=START + OPEN, limits={"most_s": 6.0}),
    "wide": Training(
        code=START + "model().fit(tf.constant(x, tf.float64), tf.constant(y), batch_size=20)\n"
    ),
    "leaves": Training(
        code=START
        + HERE
        + PRECIOUS
        + "m = model()\n"
        + "try:\n"
        + "    history = m.fit(x, y, batch_size=20)\n"
        + "finally:\n"
        + "    m.save(here + '/model.keras')\n"
        + "    print(history.history)\n"
    ),
    "cached": Training(
        code=START
        + HERE
        + "def slow(a, b):\n"
        + "    a = tf.numpy_function(lambda v: (time.sleep(0.01), v)[1], [a], tf.float32)\n"
        + "    a.set_shape([None, 8])\n"
        + "    return a, b\n"
        + DATA
        + "model().fit(data.repeat(100).map(slow).cache(here + '/kept'))\n"
    ),
    "named": Training(
        code=START
        + "import collections\n"
        + "Pair = collections.namedtuple('Pair', 'b a')\n"
        + "data = tf.data.Dataset.from_tensor_slices(Pair(a=x, b=y)).batch(20).repeat()\n"
        + STEP.replace("step(a, b)", "step(source)").replace(
            "    with", "    pair = next(source)\n    a, b = pair.a, pair.b\n    with"
        )
        + "source = iter(data)\nwhile True:\n    step(source)\n"
    ),
    "trainer": Training(
        code=START
        + STEP
        + "class Trainer:\n"
        + "    def fit(self):\n"
        + "        while True:\n"
        + "            step(x[:20], y[:20])\n"
        + "            time.sleep(0.004)\n"
        + "Trainer().fit()\n"
    ),
    "two": Training(code=START + DATA + STEP + TWO),
    "validates": Training(code=START + DATA + STEP + VALIDATES),
    "saves": Training(code=START + STEP + SAVES),
    "on_batch": Training(code=START + ON_BATCH),
    "two_models": Training(code=START + TWO_MODELS, limits=at_least(31)),
    "acts": Training(code=START + ACTS),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("unusual")


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, Any]:
    return Looks(folder, RUNS)


def _facts(found: dict[str, Any], name: str) -> StepFacts:
    assert "failed" not in found[name], found[name]["failed"]
    return facts_of(found[name])


def _files(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()} - {"train.py", "result.json", "__pycache__"}


def test_callbacks_see_only_the_epochs_of_the_training(found: dict[str, Any]) -> None:
    facts = _facts(found, "table")
    assert facts.steps_seen > 30  # three epochs of 10 steps would be all of it
    assert facts.epochs == 3


def test_a_training_that_begins_at_a_later_epoch_is_looked_at_for_as_long(
    found: dict[str, Any],
) -> None:
    facts = _facts(found, "resumed")
    assert facts.steps_seen > 20
    assert facts.epochs == 2  # the third and the fourth
    assert facts.notes == ()


@pytest.mark.slow
def test_a_callback_that_stops_early_does_not_end_the_look(found: dict[str, Any]) -> None:
    facts = _facts(found, "early")
    assert facts.steps_seen > 50
    # Its second epoch of 10 steps is no better than the first.
    note = "A callback asked for the end after 20 steps; the training was kept going."
    assert facts.notes == (note,)


def test_callbacks_in_a_list_of_keras_own_are_timed(found: dict[str, Any]) -> None:
    facts = _facts(found, "list")
    (slow,) = (one for one in facts.callbacks if one.name == "Slow")
    assert slow.per_step_s > 0.004
    assert facts.steps_seen > 30


@pytest.mark.parametrize("name", ["ragged", "sparse"])
def test_the_batch_of_composite_tensors_is_their_rows(found: dict[str, Any], name: str) -> None:
    facts = _facts(found, name)
    assert facts.batch_size == 20
    assert facts.held_s


def test_a_step_that_cannot_be_repeated_is_told_without(found: dict[str, Any]) -> None:
    facts = _facts(found, "once")
    assert facts.held_s == ()
    assert facts.input
    assert facts.step_s
    (note,) = (one for one in facts.notes if one.startswith("The step could not be repeated"))
    assert "no more" in note


@pytest.mark.slow
def test_a_validation_of_unknown_length_that_was_cut_is_told_as_at_least_so_long(
    found: dict[str, Any],
) -> None:
    facts = _facts(found, "open")
    (validation,) = facts.callbacks
    assert 3.0 <= validation.per_epoch_s < 10.0  # it would take 10 s
    assert facts.notes == ("Validation was cut short after 3 s: it takes at least so long.",)


@pytest.mark.slow
def test_wide_tensors_that_keras_makes_narrow_are_not_told(found: dict[str, Any]) -> None:
    assert _facts(found, "wide").float64 == ()


@pytest.mark.slow
def test_what_a_script_saves_on_its_way_out_does_not_reach_the_disk(
    found: dict[str, Any], folder: Path
) -> None:
    assert _facts(found, "leaves").step_s
    assert (folder / "leaves" / "model.keras").read_text() == "precious"
    assert _files(folder / "leaves") == {"model.keras", "own.keras", "ck.index"}


@pytest.mark.slow
def test_a_cache_of_files_is_not_left_half_made(found: dict[str, Any], folder: Path) -> None:
    assert _facts(found, "cached").held_s
    assert _files(folder / "cached") == set()


@pytest.mark.slow
def test_a_batch_of_names_is_held_with_its_names(found: dict[str, Any]) -> None:
    facts = _facts(found, "named")
    assert facts.held_s
    assert facts.operations


def test_lines_within_a_fit_of_the_users_own_are_told(found: dict[str, Any]) -> None:
    facts = _facts(found, "trainer")
    line = RUNS["trainer"].code.splitlines().index("            time.sleep(0.004)") + 1
    place, seconds_s = facts.python_lines[0]
    assert place == f"train.py:{line}"
    assert 0.003 < seconds_s <= max(facts.step_s)


def test_a_second_function_in_each_step_is_a_part_of_it(found: dict[str, Any]) -> None:
    facts = _facts(found, "two")
    assert facts.callbacks == ()
    assert facts.python_s < 0.25 * middle(facts.step_s)
    assert facts.operations
    # Three products of 500 x 500, 2 * 500^3 operations each, are most of what runs on the batch.
    assert facts.operations.class_s["gemm"] > 0.5 * facts.operations.busy_s


def test_validation_in_a_loop_is_told_for_each_epoch_and_is_in_no_step(
    found: dict[str, Any],
) -> None:
    facts = _facts(found, "validates")
    assert facts.steps_per_epoch == 10
    (validation,) = facts.callbacks
    assert validation.name == "validation (check)"
    assert validation.place.startswith("train.py:")
    # 50 calls of a graph and as many batches, against 10 steps.
    assert validation.per_epoch_s > 5 * middle(facts.step_s)
    assert facts.python_s < middle(facts.step_s)


def test_a_checkpoint_manager_of_a_loop_deletes_and_writes_nothing_of_the_users(
    found: dict[str, Any], folder: Path
) -> None:
    names = {one.name for one in _facts(found, "saves").callbacks}
    assert names == {"checkpoint (CheckpointManager.save)", "checkpoint (save_model)"}
    assert _files(folder / "saves") == {"model.keras", "own.keras", "ck.index"}
    assert (folder / "saves" / "model.keras").read_text() == "precious"


def test_evaluate_in_a_loop_of_batches_is_run_and_told(found: dict[str, Any]) -> None:
    facts = _facts(found, "on_batch")
    (validation,) = facts.callbacks
    assert validation.name == "validation (evaluate)"
    assert facts.steps_per_epoch == 10  # so many steps lie between two of them
    assert validation.per_epoch_s > 0.005


@pytest.mark.slow
def test_two_models_trained_in_turns_make_one_step(found: dict[str, Any]) -> None:
    facts = _facts(found, "two_models")
    assert facts.callbacks == ()
    assert facts.python_s < 0.2 * middle(facts.step_s)
    assert middle(facts.held_s) > 0.6 * middle(facts.step_s)  # both models, one after the other


@pytest.mark.slow
def test_predicting_at_each_step_is_the_loops_own_python(found: dict[str, Any]) -> None:
    facts = _facts(found, "acts")
    assert facts.callbacks == ()
    assert facts.python_s > 0.5 * middle(facts.step_s)  # predict makes a dataset for each call
    assert facts.input is None  # which is not what the loop trains on
    assert facts.python_lines[0][0] == f"train.py:{len(START.splitlines()) + 3}"
