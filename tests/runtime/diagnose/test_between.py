"""What a loop does between its steps, on a clock that the test turns itself."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow

pytestmark = pytest.mark.tf
CODE = """
import dataclasses
from types import SimpleNamespace
from tfdyno.runtime.diagnose.between import MOST_CALLS, Between
from tfdyno.core.messages.diagnose import Limits
from tfdyno.runtime.diagnose.clock import StepTimes, own_steps

def check(): pass
def bank(): pass
def critic(): pass

result = {}
now = [100.0]
def made():
    times = StepTimes(limits=Limits(warm_s=0.0, warm_steps=1, own_s=1e9), now=lambda: now[0])
    return times, Between(times)

def step(times, between):
    calls = between.step_begins()
    times.begin()
    now[0] += 0.1
    times.end()
    return calls

def ran(between, function, seconds_s, is_usual=False):
    now[0] += seconds_s
    between.ran(SimpleNamespace(python_function=function), lambda: function, seconds_s,
                is_usual=is_usual)

def told(facts):
    return [[one.name, one.place, one.per_step_s, one.per_epoch_s] for one in facts]

# each tenth step: 4 batches of validation, 0.2 s each; its first time is traced, 1 s each
times, between = made()
for number in range(42):
    if number % 10 == 9:
        for _ in range(4):
            ran(between, check, 1.0 if number == 9 else 0.2)
        now[0] += 0.1  # reading them
    step(times, between)
facts, every = between.facts(0)
result["validates"] = told(facts), every
result["of 21"] = told(between.facts(21)[0])
result["often"] = between.often()

# a function that trains, now and then; another one once in ten steps; one that ran once
times, between = made()
for number in range(42):
    if number % 5 == 4:
        ran(between, critic, 0.3, is_usual=True)
    if number % 10 == 9:
        ran(between, bank, 0.2)
    if number == 20:
        between.did("validation", "evaluate", 0.5)
    step(times, between)
result["trains"] = told(between.facts(0)[0])

# saving after each step
times, between = made()
for number in range(12):
    step(times, between)
    between.did("checkpoint", "save", 0.05)
    now[0] += 0.05
result["saves"] = told(between.facts(0)[0])
result["saving"] = times.steps[-1].checkpoint_s

# a second function in each step; the calls can be made again; too many are not kept
times, between = made()
for number in range(12):
    ran(between, check, 0.2)
    calls = step(times, between)
result["second"] = [between.often(), len(calls), calls[0]() is check, told(between.facts(0)[0])]
for _ in range(MOST_CALLS + 5):
    ran(between, check, 0.001)
result["many"] = len(step(times, between))

# another model trained at each step, and a prediction at each step and now and then
times, between = made()
for number in range(42):
    now[0] += 0.2
    between.trained(lambda: "again", 0.2)
    now[0] += 0.1
    between.predicted("predict", 0.1)
    if number % 10 == 9:
        now[0] += 0.3
        between.predicted("predict_on_batch", 0.3)
    calls = step(times, between)
own = own_steps(times)
result["others"] = [calls[0](), round(own.python_s, 6), round(own.callback_s, 6),
                    told(between.facts(0)[0])]
result["nothing"] = told(made()[1].facts(0)[0])
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    answer: dict[str, Any] = in_tensorflow(CODE)
    return answer


def test_a_function_that_takes_batch_after_batch_now_and_then_validates(
    found: dict[str, Any],
) -> None:
    ((name, _, per_step_s, per_epoch_s),), every = found["validates"]
    assert name == "validation (check)"
    # 40 steps count, of which 4 begin with it; without the first, which traces, a validation takes
    # 4 * 0.2 + 0.1 = 0.9 s more than a usual step: 4 * 0.9 s over 40 steps, ten of them an epoch.
    assert every == 10
    assert per_epoch_s == pytest.approx(0.9)
    assert per_step_s == 0.0


def test_it_is_spread_over_the_epoch_that_is_known(found: dict[str, Any]) -> None:
    assert found["of 21"][0][3] == pytest.approx(4 * 0.9 / 40 * 21)
    assert found["often"] is False


def test_what_trains_is_training_and_what_ran_once_is_not_told(found: dict[str, Any]) -> None:
    ((name, _, _, per_epoch_s),) = found["trains"]
    assert name == "bank"  # one call at a time: nobody knows what it does
    # Each tenth step has 0.2 s of it and 0.3 s of the critic.
    assert 0.2 <= per_epoch_s <= 0.5


def test_what_is_done_after_each_step_is_told_for_each_step(found: dict[str, Any]) -> None:
    ((name, _, per_step_s, per_epoch_s),) = found["saves"]
    assert name == "checkpoint (save)"
    assert found["saving"] == pytest.approx(0.05)
    assert per_step_s == pytest.approx(0.05)
    assert per_epoch_s == 0.0


def test_a_function_in_each_step_is_no_callback_and_can_be_called_again(
    found: dict[str, Any],
) -> None:
    assert found["second"] == [True, 1, True, []]


def test_the_data_of_many_calls_is_not_kept(found: dict[str, Any]) -> None:
    assert found["many"] == 0


def test_predicting_at_each_step_is_python_and_training_another_model_is_the_step(
    found: dict[str, Any],
) -> None:
    again, python_s, callback_s, ((name, _, _, per_epoch_s),) = found["others"]
    assert again == "again"
    # 0.3 s between the calls, of which 0.2 train.
    assert python_s == pytest.approx(0.1)
    assert callback_s == 0.0
    assert name == "predict_on_batch"
    assert per_epoch_s == pytest.approx(0.3)


def test_without_a_step_there_is_nothing_to_tell(found: dict[str, Any]) -> None:
    assert found["nothing"] == []
