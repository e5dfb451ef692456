"""Callbacks and validation, timed where they run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.looks import START, Training, facts_of, looked, middle

from tfdyno.core.measure.step_facts import CallbackFacts
from tfdyno.runtime.diagnose.callbacks import CallbackTimes, ValidationTimes, in_each_step
from tfdyno.runtime.diagnose.clock import StepTimes

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Logs
    from tfdyno.core.measure.step_facts import StepFacts

SLOW = START + (
    "class Slow(keras.callbacks.Callback):\n"
    "    def on_train_batch_end(self, batch, logs=None):\n"
    "        time.sleep(0.005)\n"
    "    def on_epoch_end(self, epoch, logs=None):\n"
    "        time.sleep(0.02)\n"
    "class Layer(keras.layers.Layer):\n"
    "    def call(self, x, training=False):\n"
    "        if training:\n"
    "            return x\n"
    "        def wait(v):\n"
    "            time.sleep(0.01)\n"
    "            return v\n"
    "        return tf.ensure_shape(tf.numpy_function(wait, [x], tf.float32), x.shape)\n"
    "    def compute_output_shape(self, shape):\n"
    "        return shape\n"
    "m = keras.Sequential([keras.Input((8,)), Layer(), keras.layers.Dense(4)])\n"
    "m.compile('sgd', 'mse', jit_compile=False)\n"
    "open('log.csv', 'w').write('mine')\n"
    "m.fit(x, y, batch_size=20, epochs=3, verbose=0, validation_data=(x[:60], y[:60]),\n"
    "      callbacks=[Slow(), keras.callbacks.ModelCheckpoint('best.keras'),\n"
    "                 keras.callbacks.LambdaCallback(on_epoch_begin=lambda e, l: None),\n"
    "                 keras.callbacks.CSVLogger('log.csv')])\n"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("callbacks")


@pytest.fixture(scope="module")
def facts(folder: Path) -> StepFacts:
    return facts_of(looked(folder, Training(code=SLOW)))


def _of(facts: StepFacts, name: str) -> CallbackFacts:
    return next(one for one in facts.callbacks if one.name == name)


@pytest.mark.tf
def test_a_callback_that_sleeps_5_ms_is_told_with_its_line(facts: StepFacts) -> None:
    slow = _of(facts, "Slow")
    assert slow.per_step_s > 0.005
    assert slow.per_epoch_s > 0.02
    assert slow.place == "train.py:8"
    assert facts.callback_s > 0.005
    assert facts.callback_s < sum(facts.step_s) / len(facts.step_s)


@pytest.mark.tf
def test_validation_is_told_by_epoch_without_its_compile(facts: StepFacts) -> None:
    # 60 samples in batches of 20: 3 x 10 ms.
    assert 0.03 < _of(facts, "validation").per_epoch_s < 80 * middle(facts.step_s)


@pytest.mark.tf
def test_checkpoints_are_told_and_are_not_kept(facts: StepFacts, folder: Path) -> None:
    assert _of(facts, "ModelCheckpoint").per_epoch_s > 0.001
    names = {path.name for path in folder.iterdir()}
    assert "best.keras" not in names
    assert not [name for name in names if name.startswith(".tfdyno-look")]
    assert (folder / "log.csv").read_text() == "mine"


class Callback:
    """As Keras' own: its methods do nothing."""

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Do nothing."""

    on_train_batch_begin = on_train_batch_end = on_epoch_end = on_epoch_begin
    on_batch_begin = on_batch_end = on_epoch_begin


for _name in vars(Callback):
    if _name.startswith("on_"):
        getattr(Callback, _name)._is_default = True


class Hand:
    """A clock that stands until it is turned."""

    s = 0.0

    def __call__(self) -> float:
        return self.s


def test_methods_that_are_keras_own_stay_as_they_are() -> None:
    one = Callback()
    CallbackTimes(StepTimes()).watch([one])
    assert "on_train_batch_end" not in vars(one)


def test_time_in_a_method_that_calls_another_is_told_once() -> None:
    hand = Hand()
    times = StepTimes(now=hand)

    class Nested(Callback):
        def on_train_batch_end(self, epoch: int, logs: Logs = None) -> None:
            hand.s += 1.0
            self.on_batch_end(epoch, logs)

        def on_batch_end(self, epoch: int, logs: Logs = None) -> None:
            hand.s += 2.0

    one, watch = Nested(), CallbackTimes(times, hand)
    watch.watch([one])
    times.own_from = 0
    times.begin()
    times.end()
    times.own_from = 0
    one.on_train_batch_end(0)
    found = watch.facts()[0]
    assert (found.name, found.per_step_s, found.per_epoch_s) == ("Nested", 3.0, 0.0)
    assert (
        found.place == f"{Path(__file__).name}:{Nested.on_train_batch_end.__code__.co_firstlineno}"
    )


def test_what_an_epoch_of_one_call_costs_is_in_each_step() -> None:
    ends = CallbackFacts(name="Slow", per_step_s=0.1, per_epoch_s=0.4)
    (found,) = in_each_step([ends], 4)
    assert found.per_step_s == pytest.approx(0.2)
    assert found.per_epoch_s == 0.0


def test_after_each_method_of_a_step_the_look_is_told() -> None:
    told: list[str] = []

    class Stops(Callback):
        def on_train_batch_end(self, epoch: int, logs: Logs = None) -> None:
            told.append("batch")

        def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
            told.append("epoch")

    one = Stops()
    CallbackTimes(StepTimes(), after_step=lambda: told.append("after")).watch([one])
    one.on_train_batch_end(0)
    one.on_epoch_end(0)
    assert told == ["batch", "after", "epoch"]


def test_what_a_callback_of_keras_saves_is_told_as_saving() -> None:
    hand = Hand()
    times = StepTimes(now=hand)

    class ModelCheckpoint(Callback):
        def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
            hand.s += 2.0

    class Own(ModelCheckpoint):
        pass

    one = Own()
    CallbackTimes(times, hand).watch([one])
    one.on_epoch_end(0)
    times.end()
    assert (times.steps[0].callback_s, times.steps[0].checkpoint_s) == (2.0, 2.0)


class Model:
    """As Keras' validates: a test function for each batch, until it is told to stop."""

    steps_per_execution = 1

    def __init__(self, hand: Hand, batches: int) -> None:
        self.hand, self.batches = hand, batches
        self.stop_evaluating, self.calls = False, 0
        self.test_function: Any = None
        self._eval_epoch_iterator = self
        self.steps_per_epoch, self.num_batches = 0, batches

    def make_test_function(self, force: bool = False) -> None:
        """Make it once; the first call takes 9 s more."""

        def run(_iterator: object) -> None:
            self.hand.s += 0.1 if self.calls else 9.0
            self.calls += 1

        if self.test_function is None or force:
            self.test_function = run

    def evaluate(self, **_named: Any) -> str:
        """Validate."""
        self.make_test_function()
        self.stop_evaluating = False
        for _ in range(self.batches):
            self.test_function(None)
            if self.stop_evaluating:
                break
        return "results"


def _validated(batches: int) -> tuple[Model, ValidationTimes]:
    hand = Hand()
    model = Model(hand, batches)
    times = ValidationTimes(model, hand, most_s=3.0)
    times.watch()
    return model, times


def test_the_first_call_of_validation_is_left_out() -> None:
    model, times = _validated(5)
    assert model.evaluate(_use_cached_eval_dataset=True) == "results"
    assert times.facts()[0].per_epoch_s == pytest.approx(0.5)
    assert model.calls == 1 + 5


def test_a_long_validation_is_cut_and_told_as_a_whole() -> None:
    model, times = _validated(1000)
    model.evaluate(_use_cached_eval_dataset=True)
    assert times.was_cut
    assert model.calls < 40
    assert times.facts()[0].per_epoch_s == pytest.approx(100.0)


@pytest.mark.tf
def test_a_validation_is_marked_in_the_course(facts: StepFacts) -> None:
    assert facts.timeline
    marked = [one for one in facts.timeline.stalls if one.validation_s > 0]
    assert marked
    assert all(one.is_first_of_epoch for one in marked)
    assert all(one.validation_s < one.whole_s for one in marked)


def test_what_a_callback_evaluates_is_no_validation() -> None:
    model, times = _validated(5)
    model.evaluate()
    assert times.facts() == ()


def test_validation_every_other_epoch_is_told_by_epoch() -> None:
    model, times = _validated(10)
    model.evaluate(_use_cached_eval_dataset=True)
    assert times.facts(every=2)[0].per_epoch_s == pytest.approx(0.5)


def test_no_more_than_a_batch_is_validated_when_it_is_enough() -> None:
    model, times = _validated(5)
    model.evaluate(_use_cached_eval_dataset=True)
    times.is_enough = lambda: True
    before = model.calls
    model.evaluate(_use_cached_eval_dataset=True)
    assert model.calls == before + 1
