"""What a look hands over: calls of several steps as single ones, only what the noun has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow

from tfdyno.runtime.diagnose.clock import StepTimes, TimedStep
from tfdyno.runtime.diagnose.watching import timeline_of

pytestmark = pytest.mark.tf
CODE = """
import dataclasses
from tfdyno.core.measure.step_facts import OperationFacts
from tfdyno.runtime.diagnose import watching as diagnose_look, operations as diagnose_operations
from tfdyno.core.messages.diagnose import Limits
from tfdyno.runtime.diagnose.clock import StepTimes

made = OperationFacts(class_s={"gemm": 0.6}, count_per_step=30.0, busy_s=0.9,
                      host_only=("Where",), largest=(("MatMul", 0.3),))
asked = []

def profiled(run, steps, names):
    asked.append([steps, sorted(names)])
    run(1)
    return made

diagnose_operations.profiled = profiled
runs = []
call = lambda: runs.append(1)
several = diagnose_look.profile_of(call, (0.05,) * 3, {"float64_names": frozenset({"a"})}, 3)
diagnose_look.profile_of(call, (0.000001,), {})
diagnose_look.profile_of(call, (9.0,), {})
result = {"several": dataclasses.asdict(several), "asked": asked, "runs": len(runs)}

# steps that end before warm-up is over
times = StepTimes(limits=Limits())
watched = diagnose_look.Watched(times)
for _ in range(3):
    times.begin()
    times.end()
subject = diagnose_look.Subject(title="t", source="run", batch_size=64, replica_count=2)
rest = diagnose_look.Rest(said={"precision": "float16", "unheard_of": 1}, notes=("after",))
facts = diagnose_look.step_facts(subject, watched, rest)
watched.close()
result["facts"] = [facts.batch_size, facts.precision, facts.host.cpus > 0, *facts.notes]
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    answer: dict[str, Any] = in_tensorflow(CODE)
    return answer


def test_a_profile_of_calls_of_three_steps_is_told_by_step(found: dict[str, Any]) -> None:
    several = found["several"]
    assert several["class_s"]["gemm"] == pytest.approx(0.2)
    assert several["count_per_step"] == pytest.approx(10)
    assert several["busy_s"] == pytest.approx(0.3)
    assert several["largest"][0][1] == pytest.approx(0.1)
    assert several["host_only"] == ["Where"]


def test_a_profile_takes_about_a_second(found: dict[str, Any]) -> None:
    # 1 s / (3 x 0.05 s) = 6 calls; at most 20 and at least 3.
    assert found["asked"] == [[6, ["a"]], [20, []], [3, []]]


def test_a_training_that_ended_early_is_told_as_such(found: dict[str, Any]) -> None:
    assert found["facts"] == [
        32, "float16", True,
        "The training ended by itself after 3 steps, before warm-up was over.", "after",
    ]  # fmt: skip


def step(whole_s: float, *, group: int = 0, **changed: float) -> TimedStep:
    base = {"call_s": whole_s, "callback_s": 0.0, "wait_s": 0.0, "wait_outside_s": 0.0,
            "count": 1, "is_first_of_epoch": False} | changed  # fmt: skip
    return TimedStep(whole_s=whole_s, group=group, **base)  # type: ignore[arg-type]


def times_of(*steps: TimedStep, own_from: int = 0) -> StepTimes:
    """A clock that has seen these, each of them waited for."""
    apart = [s if s.group else _in_group(s, at + 1) for at, s in enumerate(steps)]
    return StepTimes(steps=apart, own_from=own_from)


def _in_group(one: TimedStep, group: int) -> TimedStep:
    return replace(one, group=group)


def test_a_long_step_is_told_with_what_was_in_it() -> None:
    usual = [step(0.1)] * 4
    slow = step(1.0, callback_s=0.2, validation_s=0.5, is_first_of_epoch=True)
    found = timeline_of(times_of(step(9.0), *usual, slow, own_from=1), {4: 0.25})
    assert found.whole_s == pytest.approx((0.1, 0.1, 0.1, 0.1, 1.0))  # the first is warm-up
    assert found.what == "after warm-up"
    (stall,) = found.stalls
    assert (stall.step, stall.whole_s, stall.is_first_of_epoch) == (5, 1.0, True)
    assert (stall.callback_s, stall.validation_s, stall.retrace_s) == (0.2, 0.5, 0.25)


def test_saving_is_told_apart_from_other_callbacks() -> None:
    usual = [step(0.1)] * 4
    found = timeline_of(times_of(*usual, step(1.0, callback_s=0.8, checkpoint_s=0.5)), {})
    assert found.stalls[0].checkpoint_s == pytest.approx(0.5)
    assert found.stalls[0].callback_s == pytest.approx(0.3)
    # a loop's own validation and saving are beside its steps, where they count as callbacks
    beside = {"validation (evaluate)": 0.5, "checkpoint (save)": 0.3}
    slow = replace(step(1.0, callback_s=0.8, checkpoint_s=0.3, validation_s=0.5), beside_s=beside)
    found = timeline_of(times_of(*usual, slow), {})
    assert (found.stalls[0].validation_s, found.stalls[0].checkpoint_s) == (0.5, 0.3)
    assert found.stalls[0].callback_s == pytest.approx(0.0)


def test_of_a_training_that_ends_in_warm_up_all_steps_but_the_first_are_told() -> None:
    found = timeline_of(times_of(step(9.0), step(0.1), step(0.2), own_from=-1), {0: 5.0})
    assert found.whole_s == pytest.approx((0.1, 0.2))
    assert found.what == ""
    assert all(one.retrace_s == 0.0 for one in found.stalls)  # nobody watched for it then


def test_steps_that_a_card_works_on_behind_the_host_take_their_mean() -> None:
    # 0, 0 and 0.3 s of the host are three steps of 0.1 s of the card
    steps = [step(0.0, group=1), step(0.0, group=1), step(0.3, group=1)]
    found = timeline_of(StepTimes(steps=steps, own_from=0), {})
    assert found.whole_s == pytest.approx((0.1, 0.1, 0.1))
    assert found.stalls == ()


def test_a_known_reason_is_no_work_of_the_card() -> None:
    steps = [*[step(0.1, group=at) for at in (1, 2, 3, 4)], step(0.0, group=5),
             step(1.0, group=5, validation_s=0.9)]  # fmt: skip
    (stall,) = [one for one in timeline_of(StepTimes(steps=steps, own_from=0), {}).stalls
                if one.validation_s]  # fmt: skip
    assert (stall.step, stall.whole_s) == (6, 1.0)


def test_calls_of_several_steps_are_told_by_the_step() -> None:
    slow = step(4.0, callback_s=2.0, count=4)
    found = timeline_of(times_of(*[step(0.4, count=4)] * 3, slow), {})
    assert found.steps_each == (4, 4, 4, 4)
    assert found.whole_s == pytest.approx((0.1, 0.1, 0.1, 1.0))
    assert (found.stalls[0].step, found.stalls[0].callback_s) == (13, 0.5)
