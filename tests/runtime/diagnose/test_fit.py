"""Calls of fit looked at in place, each with a planted truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.benches import in_tensorflow
from tests.runtime.looks import START, WAITS, Looks, Training, facts_of, middle

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.measure.step_facts import StepFacts

pytestmark = pytest.mark.tf
GENERATOR = START + (
    "def batches(count):\n"
    "    for _ in range(count):\n"
    "        time.sleep(0.005)\n"
    "        yield x[:20], y[:20]\n"
)
RUNS = {
    "input": Training(code=WAITS + "model().fit(data, epochs=3)\n"),
    "ends": Training(code=GENERATOR + "model().fit(batches(4))\n"),
    "generator": Training(
        code=GENERATOR + "model().fit(batches(100_000), steps_per_epoch=30, epochs=2)\n",
        limits={"alone_s": 3.0},  # the first batches come at once, from a buffer
    ),
    "python": Training(
        code=START
        + "class Data(keras.utils.PyDataset):\n"
        + "    def __len__(self):\n"
        + "        return 10\n"
        + "    def __getitem__(self, index):\n"
        + "        time.sleep(0.005)\n"
        + "        return x[:20], y[:20]\n"
        + "model().fit(Data(workers=2))\n"
    ),
    "several": Training(code=START + "model(steps_per_execution=3).fit(x, y, batch_size=20)\n"),
    "alone": Training(code=START.replace("def model(**how)", "def build(**how)"), function="build"),
    "mirrored": Training(
        code="import tensorflow as tf\n"
        + "one = tf.config.LogicalDeviceConfiguration\n"
        + "cpu = tf.config.list_physical_devices('CPU')[0]\n"
        + "tf.config.set_logical_device_configuration(cpu, [one(), one()])\n"
        + START
        + "with tf.distribute.MirroredStrategy(['CPU:0', 'CPU:1']).scope():\n"
        + "    m = model()\n"
        + "m.fit(x, y, batch_size=20)\n"
    ),
    "predicts": Training(
        code=START
        + "class Journal(keras.callbacks.Callback):\n"
        + "    def on_train_batch_end(self, batch, logs=None):\n"
        + "        self.model.predict(x[:16], verbose=0)\n"
        + "model().fit(x, y, batch_size=20, callbacks=[Journal()])\n",
        limits={"own_s": 2.0},
    ),
    "whole": Training(
        code=START
        + "class Slow(keras.callbacks.Callback):\n"
        + "    def on_epoch_end(self, epoch, logs=None):\n"
        + "        time.sleep(0.01)\n"
        + "model().fit(x, y, batch_size=len(x), validation_data=(x, y), callbacks=[Slow()])\n",
        limits={"own_s": 0.3, "alone_s": 0.2, "stages_s": 0.2},
    ),
    "workers": Training(
        code=START
        + "m = model()\n"
        + "m.distribute_strategy.extended._num_workers = 2\n"  # as of a strategy of two workers
        + "m.fit(x, y, batch_size=20, epochs=3)\n"
    ),
    "empty": Training(
        code=START + "model().fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(8).take(0))\n"
    ),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return Looks(tmp_path_factory.mktemp("fit"), RUNS)


def _facts(found: dict[str, Any], name: str) -> StepFacts:
    return facts_of(found[name])


def test_a_map_that_waits_10_ms_is_found_in_the_step_and_in_the_input(
    found: dict[str, Any],
) -> None:
    facts = _facts(found, "input")
    assert facts.input
    assert middle(facts.step_s) > 0.010
    assert middle(facts.input.batch_s) > 0.010
    assert facts.held_s
    assert min(facts.held_s) < middle(facts.step_s) - 0.004  # the wait is not in it
    assert (facts.source, facts.batch_size, facts.steps_per_epoch, facts.epochs) == (
        "run", 20, 10, 3,
    )  # fmt: skip
    assert facts.input.samples_per_epoch == 200


def test_its_stage_is_told_with_its_line_and_its_time(found: dict[str, Any]) -> None:
    facts = _facts(found, "input")
    assert facts.input
    stage = max(facts.input.stages, key=lambda one: one.own_s)
    assert (stage.title, stage.place, stage.runs_python) == ("map(waits)", "train.py:15", True)
    assert stage.own_s > 0.010
    assert sum(one.own_s for one in facts.input.stages if one is not stage) < stage.own_s


def test_a_generator_that_ends_is_told_with_what_it_gave(found: dict[str, Any]) -> None:
    facts = _facts(found, "ends")
    assert facts.steps_seen == 4
    assert len(facts.step_s) == 3
    note = "The training ended by itself after 4 steps"  # a busy machine is warm by then
    assert any(one.startswith(note) for one in facts.notes)


def test_a_generator_that_has_ended_is_not_run_again(found: dict[str, Any]) -> None:
    facts = _facts(found, "ends")
    assert facts.input is None
    assert "The generator has ended: it was not run by itself." in facts.notes
    assert facts.held_s  # on a batch that Keras keeps


def test_epochs_that_share_one_pass_wait_for_no_new_iterator(found: dict[str, Any]) -> None:
    shared, anew = _facts(found, "generator").input, _facts(found, "input").input
    assert shared
    assert anew
    assert shared.start_s == 0.0  # steps_per_epoch says where an epoch ends
    assert anew.start_s > 0.0


def test_workers_of_a_pydataset_make_its_batches_ahead(found: dict[str, Any]) -> None:
    given = _facts(found, "python").input
    assert given
    assert (given.workers, given.prefetches) == (2, True)


def test_one_of_several_workers_trains_its_own_epochs_and_no_step_alone(
    found: dict[str, Any],
) -> None:
    facts = _facts(found, "workers")
    assert (facts.worker_count, facts.steps_seen, facts.held_s) == (2, 30, ())
    assert "The step of several workers was not run without its data." in facts.notes
    assert facts.input


def test_a_generator_and_a_pydataset_are_told_apart(found: dict[str, Any]) -> None:
    generator, python = _facts(found, "generator").input, _facts(found, "python").input
    assert generator
    assert python
    assert (generator.kind, python.kind) == ("generator", "pydataset")
    assert middle(generator.batch_s) > 0.005
    # Two workers wait 5 ms at the same time: 2.5 ms for a batch at best.
    assert sum(python.batch_s) / len(python.batch_s) > 0.002


def test_several_steps_in_a_call_are_told_as_single_steps(found: dict[str, Any]) -> None:
    facts = _facts(found, "several")
    assert facts.steps_per_execution == 3
    assert facts.steps_seen % 10 in (0, 3, 6, 9)  # epochs of 3, 3, 3 and 1 steps
    assert facts.steps_per_epoch == 10


def test_what_an_epoch_of_one_step_costs_is_a_part_of_the_step(found: dict[str, Any]) -> None:
    facts = _facts(found, "whole")
    assert facts.steps_per_epoch == 1
    assert {one.name for one in facts.callbacks} == {"Slow", "validation"}
    assert all(one.per_step_s > 0.0 and one.per_epoch_s == 0.0 for one in facts.callbacks)
    assert sum(one.per_step_s for one in facts.callbacks) < 1.5 * middle(facts.step_s)


def test_a_model_without_data_has_no_input(found: dict[str, Any]) -> None:
    facts = _facts(found, "alone")
    assert facts.input is None
    assert facts.notes == ("build brings no data: one random batch again and again.",)
    assert facts.held_s


def test_replicas_are_counted_and_the_batch_is_that_of_one(found: dict[str, Any]) -> None:
    facts = _facts(found, "mirrored")
    assert (facts.replica_count, facts.batch_size) == (2, 10)
    assert facts.held_s


def test_data_without_a_batch_is_refused(found: dict[str, Any]) -> None:
    assert found["empty"]["exit_code"] == 2


def test_the_parts_never_take_more_than_the_step(found: dict[str, Any]) -> None:
    for name in ("input", "generator", "several", "mirrored"):
        facts = _facts(found, name)
        mean_s = sum(facts.step_s) / len(facts.step_s)
        assert 0 <= facts.python_s + facts.callback_s <= mean_s, name


def test_a_look_leaves_nothing_behind(tmp_path: Path, found: dict[str, Any]) -> None:
    assert found
    assert not list(tmp_path.rglob(".tfdyno-look-*"))


def test_what_a_callback_opens_in_each_step_is_let_go(found: dict[str, Any]) -> None:
    seen = facts_of(found["predicts"])
    assert seen.steps_seen >= 8
    assert not seen.growth
    assert {one.callback for one in seen.retraces} == {"Journal"}


def test_what_a_callback_reads_is_no_waiting_of_the_step(found: dict[str, Any]) -> None:
    assert facts_of(found["predicts"]).waits_s == 0.0


EPOCHS = """
from types import SimpleNamespace
from tfdyno.runtime.diagnose.clock import StepTimes
from tfdyno.runtime.diagnose.fit import Epochs

times = StepTimes()
one = Epochs(times, first=2, last=5)
none = Epochs(times, first=3, last=3)
result = {"numbers": [one.number(epoch) for epoch in range(2, 10)], "none": none.number(7)}
result["counts"] = [one.count, none.count]
params = {"epochs": 1_000_000, "steps": 10}
one.set_params(params)
result["params"] = [params["epochs"], one.params["steps"]]

model = SimpleNamespace(stop_training=False)
one._model = model  # as Keras sets it
one.on_epoch_begin(2)
one.position = 4
model.stop_training = True  # by a callback
one.on_epoch_end(2)
result["kept going"] = [model.stop_training, one.asked_at]
model.stop_training = True  # by a callback at a step
one.keep_going()
result["kept going"].append(model.stop_training)
one.on_epoch_begin(3)
result["longest"] = [one.longest, one.position]
one.on_epoch_end(3)
one.on_epoch_begin(4)  # the epoch before gave nothing
one.on_epoch_end(4)
result["ended"] = model.stop_training
times.done = True
model.stop_training = True
one.on_epoch_end(4)
result["done"] = model.stop_training
"""


@pytest.fixture(scope="module")
def epochs() -> dict[str, Any]:
    answer: dict[str, Any] = in_tensorflow(EPOCHS)
    return answer


def test_the_numbers_come_again_and_again(epochs: dict[str, Any]) -> None:
    assert epochs["numbers"] == [2, 3, 4, 2, 3, 4, 2, 3]
    assert epochs["none"] == 7  # a training of no epochs: as it is
    assert epochs["counts"] == [3, 0]


def test_all_callbacks_are_told_of_the_users_own_epochs(epochs: dict[str, Any]) -> None:
    assert epochs["params"] == [5, 10]


def test_the_end_that_a_callback_asks_for_is_put_off(epochs: dict[str, Any]) -> None:
    assert epochs["kept going"][0] is False
    assert epochs["kept going"][2] is False  # at once: else each later epoch would be one step


def test_steps_of_the_longest_epoch_are_kept(epochs: dict[str, Any]) -> None:
    assert epochs["longest"] == [4, 0]


def test_data_that_gave_nothing_in_an_epoch_has_ended(epochs: dict[str, Any]) -> None:
    assert epochs["ended"] is True


def test_enough_is_enough(epochs: dict[str, Any]) -> None:
    assert epochs["done"] is True
