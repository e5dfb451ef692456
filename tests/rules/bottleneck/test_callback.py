"""Callbacks are named by what they do, and told with what a step or an epoch costs."""

from __future__ import annotations

from typing import Any

import pytest
from tests.rules.bottleneck.steps import answer, drafts, facts, only, primary

from tfdyno.core.measure.step_facts import CallbackFacts, StepFacts
from tfdyno.rules.bottleneck.callback import between_epochs, slow_callbacks
from tfdyno.rules.bottleneck.split import split_of


def with_callback(name: str, per_step_s: float = 0.0, per_epoch_s: float = 0.0) -> StepFacts:
    """One callback beside a step of 20 ms."""
    one = CallbackFacts(name=name, per_step_s=per_step_s, per_epoch_s=per_epoch_s)
    return facts(step_s=(0.020 + per_step_s,) * 40, callback_s=per_step_s, callbacks=(one,))


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("ModelCheckpoint", "checkpoint_each_step"),
        ("WeightSaver", "checkpoint_each_step"),
        ("TensorBoard", "logging"),
        ("JsonLogger", "logging"),
        ("LogPredictions", "logging"),
        ("GradientHistograms", "slow_callback"),
    ],
)
def test_a_callback_of_each_step_is_named_by_what_it_does(name: str, cause: str) -> None:
    # 20 of 40 ms, nine tenths go
    found = primary(with_callback(name, per_step_s=0.020))
    assert found.cause == f"callback.{cause}"
    assert found.expected_gain is not None
    assert found.expected_gain.best == pytest.approx(40 / 22)


def test_validation_is_spread_over_the_steps_of_its_epoch() -> None:
    # 2 s for 100 steps: 20 ms beside each of 20; four fifths go
    found = only(slow_callbacks, with_callback("validation", per_epoch_s=2.0))
    assert found.cause == "callback.validation_each_epoch"
    assert found.gain is not None
    assert found.gain.best == pytest.approx(40 / 24)


def test_usual_validation_is_no_finding() -> None:
    # 0.4 s for 2 s of steps: a sixth
    assert not drafts(slow_callbacks, with_callback("validation", per_epoch_s=0.4))


def test_the_split_has_its_own_parts_for_checkpoints() -> None:
    told = answer(with_callback("ModelCheckpoint", per_step_s=0.020))
    assert told.split_s["checkpoint"] == pytest.approx(0.020)
    assert told.split_s["callback"] == 0.0


def test_a_checkpoint_at_every_tenth_step_comes_on_top_of_the_typical_step() -> None:
    # 20 ms a step on average, though 9 of 10 steps take 20 ms in all
    one = CallbackFacts(name="ModelCheckpoint", per_step_s=0.020)
    steps = ((0.020,) * 9 + (0.220,)) * 4
    found = only(slow_callbacks, facts(step_s=steps, callback_s=0.020, callbacks=(one,)))
    assert found.gain is not None
    assert found.gain.best == pytest.approx(40 / 22, rel=0.03)


def test_time_that_no_callback_accounts_for_is_told_too() -> None:
    seen = facts(step_s=(0.040,) * 40, callback_s=0.020)
    assert only(slow_callbacks, seen).values["name"] == "callbacks"


def test_a_quick_callback_is_left_alone() -> None:
    assert not drafts(slow_callbacks, with_callback("TensorBoard", per_step_s=0.0005))


def record(**changed: Any) -> StepFacts:
    """Steps of 20 ms, 100 in an epoch, and what is said of their epochs."""
    bare = {"source": "record", "held_s": (), "operations": None, "input": None}
    return facts(**(bare | changed))


def test_ends_of_epochs_are_unseen_and_no_callback() -> None:
    # 1 s in 100 steps: 10 ms to each of 20
    seen = record(epoch_ends_s=1.0)
    parts = split_of(seen).parts_s
    assert parts["unseen"] == pytest.approx(0.030)
    assert parts["callback"] == 0.0
    found = only(between_epochs, seen)
    assert found.cause == "host.epoch_ends"
    text = "from the last step of an epoch on: 1 s in each epoch of 100 steps"
    assert found.evidence[0].text == text
    assert found.gain is not None
    assert found.gain.best == pytest.approx(30 / (30 - 0.75 * 10))
    assert not [one for one in answer(seen).findings if one.bottleneck_class == "callback"]


def test_checkpoints_of_train_itself_are_no_callback_of_the_script() -> None:
    seen = record(epoch_saves_s=0.5)
    assert split_of(seen).parts_s["checkpoint"] == pytest.approx(0.005)
    assert [one.cause for one in answer(seen).findings] == ["host.train_checkpoints"]


def test_callbacks_that_were_timed_are_blamed_beside_them() -> None:
    own = CallbackFacts(name="callbacks at the end of an epoch", per_epoch_s=2.0)
    causes = {one.cause for one in answer(record(epoch_ends_s=1.0, callbacks=(own,))).findings}
    assert causes == {"callback.slow_callback", "host.epoch_ends"}


def test_what_takes_little_between_epochs_is_left_alone() -> None:
    assert not drafts(between_epochs, record(epoch_ends_s=0.05, epoch_saves_s=0.05))
    assert not drafts(between_epochs, record(epoch_ends_s=1.0, steps_per_epoch=0))
