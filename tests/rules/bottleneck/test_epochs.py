"""What lies between the epochs of a record is called what it is, or unknown."""

from __future__ import annotations

from typing import Any

import pytest
from tests.rules.bottleneck.steps import answer, drafts, facts, only

from tfdyno.core.measure.step_facts import CallbackFacts, StepFacts
from tfdyno.rules.bottleneck.epochs import between_epochs
from tfdyno.rules.bottleneck.split import split_of


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
