"""Loops of the user's own looked at in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.benches import in_tensorflow
from tests.runtime.looks import START, STEP, WAITS, Looks, Training, facts_of, middle

if TYPE_CHECKING:
    from tfdyno.core.measure.step_facts import StepFacts

pytestmark = pytest.mark.tf
RUNS = {
    "function": Training(
        code=WAITS.replace("sleep(0.01)", "sleep(0.06)")
        + STEP
        + "for a, b in data.repeat():\n    loss = step(a, b)\n    time.sleep(0.02)\n"
    ),
    "iterator": Training(
        code=WAITS
        + STEP.replace("step(a, b)", "step(source)").replace(
            "    with", "    a, b = next(source)\n    with"
        )
        + "source = iter(data.repeat())\nwhile True:\n    step(source)\n"
    ),
    "eager": Training(
        code=WAITS
        + "m = model()\n"
        + "for a, b in data.repeat():\n"
        + "    with tf.GradientTape() as tape:\n"
        + "        loss = tf.reduce_mean((m(a) - b) ** 2)\n"
        + "    gradients = tape.gradient(loss, m.trainable_variables)\n"
        + "    m.optimizer.apply_gradients(zip(gradients, m.trainable_variables))\n"
    ),
    "on_batch": Training(
        code=START
        + "m = model()\nwhile True:\n    time.sleep(0.02)\n    m.train_on_batch(x[:16], y[:16])\n"
    ),
    "ended": Training(code=WAITS + STEP + "for a, b in data:\n    step(a, b)\n"),
    "gone": Training(
        code=WAITS
        + "import os\n"
        + "data = data.cache(os.path.dirname(os.path.abspath(__file__)) + '/kept')\n"
        + "class Trainer:\n"
        + "    def __init__(self):\n"
        + "        self.m = model()\n"
        + "    @tf.function\n"
        + "    def step(self, a, b):\n"
        + "        with tf.GradientTape() as tape:\n"
        + "            loss = tf.reduce_mean((self.m(a) - b) ** 2)\n"
        + "        gradients = tape.gradient(loss, self.m.trainable_variables)\n"
        + "        self.m.optimizer.apply_gradients(zip(gradients, self.m.trainable_variables))\n"
        + "    def run(self):\n"
        + "        for a, b in data:\n"
        + "            self.step(a, b)\n"
        + "Trainer().run()\nimport gc\ngc.collect()\n"
    ),
    "anew": Training(
        code=WAITS
        + STEP.replace("@tf.function\n", "")
        + "for a, b in data.repeat():\n    tf.function(lambda a, b: step(a, b))(a, b)\n"
    ),
    "in turns": Training(
        code=START
        + "time_s = {}\n"
        + "def maker(m):\n"
        + "    @tf.function\n"
        + "    def step(a, b):\n"
        + "        with tf.GradientTape() as tape:\n"
        + "            loss = tf.reduce_mean((m(a) - b) ** 2)\n"
        + "        return tape.gradient(loss, m.trainable_variables)\n"
        + "    return step\n"
        + "one, two = maker(model()), maker(model())\n"
        + "for number in range(100000):\n"
        + "    one(x[:16], y[:16])\n"
        + "    two(x[:16], y[:16])\n"
        + "    time.sleep(0.01)\n"
    ),
    "fails": Training(
        code=WAITS
        + STEP
        + "for number, (a, b) in enumerate(data):\n"
        + "    step(a, b)\n"
        + "    if number == 2:\n"
        + "        raise ValueError('no more')\n"
    ),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return Looks(tmp_path_factory.mktemp("loop"), RUNS)


def _facts(found: dict[str, Any], name: str) -> StepFacts:
    return facts_of(found[name])


def test_a_loop_is_split_into_its_step_its_waiting_and_its_python(found: dict[str, Any]) -> None:
    facts = _facts(found, "function")
    assert (facts.source, facts.title, facts.batch_size) == ("loop", "train:step", 20)
    # Long enough that no scheduler hides them: the loop sleeps 20 ms.
    assert 0.020 < facts.python_s < 0.045
    # TensorFlow makes the next batch meanwhile: 60 ms less the 20 ms of sleep and the step.
    assert facts.waits_s > 0.005
    mean_s = sum(facts.step_s) / len(facts.step_s)
    assert facts.python_s + facts.waits_s <= mean_s
    assert min(facts.held_s) < 0.008


def test_the_input_of_a_loop_is_looked_at_by_itself(found: dict[str, Any]) -> None:
    for name in ("function", "iterator", "eager", "ended"):
        facts = _facts(found, name)
        assert facts.input, name
        assert middle(facts.input.batch_s) > 0.010, name
        stage = max(facts.input.stages, key=lambda one: one.own_s)
        assert (stage.title, stage.place) == ("map(waits)", "train.py:15"), name


def test_a_step_that_takes_an_iterator_is_held_on_one_batch(found: dict[str, Any]) -> None:
    facts = _facts(found, "iterator")
    # tf.data makes batches ahead while a busy machine keeps the loop waiting: not each step waits.
    assert max(facts.step_s) > 0.009
    assert min(facts.held_s) < 0.008
    assert facts.batch_size == 20


def test_lines_of_python_are_told_with_their_time(found: dict[str, Any]) -> None:
    lines = dict(_facts(found, "function").python_lines)
    assert lines["train.py:26"] > 0.010  # the sleep of 20 ms, by samples


def test_an_eager_loop_has_its_waiting_alone(found: dict[str, Any]) -> None:
    facts = _facts(found, "eager")
    assert facts.execution == "eager"
    # The next batch of 10 ms is made meanwhile: a slow machine's step leaves little of it to wait.
    own_s = sum(facts.step_s) / len(facts.step_s) - facts.waits_s
    assert facts.waits_s > min(0.001, (0.010 - own_s) / 2)
    assert facts.held_s == ()
    assert facts.batch_size == 20


def test_train_on_batch_is_split_too(found: dict[str, Any]) -> None:
    facts = _facts(found, "on_batch")
    assert 0.020 < facts.python_s < 0.045
    assert facts.held_s
    assert facts.batch_size == 16


def test_a_loop_that_ends_early_is_told_with_what_was_seen(found: dict[str, Any]) -> None:
    facts = _facts(found, "ended")
    assert facts.steps_seen == 10
    note = "The training ended by itself after 10 steps"  # a busy machine is warm by then
    assert any(one.startswith(note) for one in facts.notes)
    assert facts.held_s
    assert facts.steps_per_epoch == 10


def test_a_loop_whose_variables_are_gone_with_its_end_is_told_all_the_same(
    found: dict[str, Any],
) -> None:
    facts = _facts(found, "gone")
    assert facts.steps_seen == 10
    assert any(note.startswith("The step could not be ") for note in facts.notes), facts.notes


def test_a_cache_of_files_is_still_there_when_the_input_is_run(found: dict[str, Any]) -> None:
    facts = _facts(found, "gone")
    assert facts.input, facts.notes
    assert facts.input.is_cached
    assert min(facts.input.batch_s) < 0.008  # it waits 10 ms for each that is made anew


def test_a_script_that_fails_at_a_step_is_told_with_its_line(found: dict[str, Any]) -> None:
    assert found["fails"]["exit_code"] == 2
    assert " failed at step 4: line " in found["fails"]["refused"]
    assert "ValueError: no more" in found["fails"]["refused"]


def test_a_step_made_anew_for_each_call_is_the_step_all_the_same(found: dict[str, Any]) -> None:
    seen = facts_of(found["anew"])
    assert seen.steps_seen >= 5
    assert [one.differs for one in seen.retraces] == ["a new tf.function for each call"]
    assert min(seen.held_s) < 0.2 * middle(seen.step_s)  # not traced again


def test_two_steps_of_one_code_in_turns_are_one_step_of_the_loop(found: dict[str, Any]) -> None:
    seen = facts_of(found["in turns"])
    assert middle(seen.step_s) > 0.010  # one of them alone would be two or three ms
    assert not seen.retraces


def test_a_call_that_reads_an_iterator_is_repeated_on_one_batch() -> None:
    told = in_tensorflow(
        "import tensorflow as tf\n"
        "from tfdyno.runtime.diagnose.loop import LastCall, in_turns\n"
        "source = iter(tf.data.Dataset.range(10))\n"
        "seen = []\n"
        "def run(function, iterator, rate):\n"
        "    seen.append((int(next(iterator)), rate, function))\n"
        "next(source)\n"
        "call = LastCall(function='step', run=run, args=(source,), named={'rate': 0.5})\n"
        "again = call.held()\n"
        "again(), again()\n"
        "call.held('compiled')()\n"
        "in_turns(lambda: seen.append('one'), [lambda: seen.append('two')])()\n"
        "plain = LastCall(function='step', run=run, args=(1, 2), named={})\n"
        "result = [seen, sorted(call.arguments), call.iterator is source, plain.iterator,\n"
        "          call.is_distributed]\n"
    )
    held = [[1, 0.5, "step"], [1, 0.5, "step"], [2, 0.5, "compiled"], "one", "two"]
    assert told == [held, ["0", "rate"], True, None, False]


def test_an_iterator_of_a_strategy_is_known_as_one() -> None:
    assert in_tensorflow(
        "import tensorflow as tf\n"
        "from tfdyno.runtime.diagnose.loop import LastCall\n"
        "strategy = tf.distribute.MirroredStrategy(['CPU:0'])\n"
        "data = strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(2))\n"
        "call = LastCall(function=None, run=print, args=(iter(data),), named={})\n"
        "result = call.is_distributed\n"
    )
