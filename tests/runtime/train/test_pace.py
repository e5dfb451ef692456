"""How fast steps came is kept in few samples that lose neither time nor steps."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.runtime.train.pace import MOST_SAMPLES, PaceRecord


def test_samples_begin_behind_the_first_step_and_epochs_are_told_apart() -> None:
    record = PaceRecord()
    record.steps(10.0, 1)  # the first step has ended: compiled, not timed
    record.steps(10.2, 3)  # too short for a sample
    record.steps(11.0, 11)
    record.epoch(11.5, 16, 13.5)  # five steps more, then 2 s of validation and callbacks
    record.steps(14.5, 4)
    record.validation_s = 1.5
    record.saved(0.25)
    found = record.pace()
    assert found.samples_s == pytest.approx((0.1, 0.1, 0.25))  # 1 s / 10, 0.5 s / 5, 1 s / 4
    assert found.steps_per_sample == (10, 5, 4)
    assert (found.firsts, found.epochs, found.epoch_end_s) == ((2,), 1, 2.0)
    assert (found.validation_s, found.save_s, found.saves) == (1.5, 0.25, 1)
    assert found.callback_s is None  # nobody told them apart


def test_an_epoch_without_steps_is_none() -> None:
    record = PaceRecord()
    record.steps(1.0, 1)
    record.steps(2.0, 3)
    record.epoch(0.0, 0, 99.0)
    assert record.pace().epochs == 0


def test_the_last_epoch_begins_no_sample() -> None:
    record = PaceRecord()
    record.steps(1.0, 1)
    record.epoch(3.0, 5, 4.0)
    assert record.pace().firsts == ()


@given(st.integers(1, 4), st.integers(MOST_SAMPLES - 2, 3 * MOST_SAMPLES))
def test_a_long_training_keeps_few_samples_with_all_its_steps(each: int, count: int) -> None:
    record = PaceRecord()
    record.steps(0.0, 0)
    for at in range(1, 6):
        record.steps(0.5 * at, each * at)
    record.epoch(2.5, 5 * each, 2.5)
    for at in range(1, count + 1):
        record.steps(2.5 + 0.5 * at, each * at)
    found = record.pace()
    assert len(found.samples_s) <= MOST_SAMPLES
    pairs = zip(found.samples_s, found.steps_per_sample, strict=True)
    spent_s = math.fsum(s * n for s, n in pairs)
    steps = sum(found.steps_per_sample)
    assert 0 <= each * (5 + count) - steps <= 4 * each  # the open sample
    assert spent_s == pytest.approx(0.5 * steps / each)
    assert all(place < len(found.samples_s) for place in found.firsts)
