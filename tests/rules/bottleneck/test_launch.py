"""Steps that take longer to start than to compute."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.rules.bottleneck.steps import OPERATIONS, drafts, facts, only, primary

from tfdyno.core.measure.step_facts import CallFacts, OperationFacts, StepFacts
from tfdyno.rules.bottleneck.launch import no_xla, small_batch, steps_per_execution

TINY = replace(OPERATIONS, class_s={"gemm": 0.0005}, busy_s=0.0005, count_per_step=100,
               largest=())  # fmt: skip


def small(**changed: Any) -> StepFacts:
    """A step of 2 ms: 0.5 in operations, 1.0 of starting them, 0.5 of Keras' loop."""
    given = {"step_s": (0.002,) * 40, "held_s": (0.0015,) * 40, "python_s": 0.0005,
             "operations": TINY, "input": None}  # fmt: skip
    return facts(**(given | changed))


def test_several_steps_in_one_call_take_away_six_tenths_of_starting() -> None:
    # 1.5 of 2 ms: 2 - 0.6 x 1.5 = 1.1
    found = only(steps_per_execution, small())
    assert found.gain is not None
    assert found.gain.best == pytest.approx(2 / 1.1)
    assert found.settings == {"steps_per_execution": "8"}
    assert primary(small()).cause == "launch.steps_per_execution"


@pytest.mark.parametrize(
    "changed",
    [{"replica_count": 2}, {"steps_per_execution": 8}, {"source": "loop"}, {"steps_per_epoch": 10},
     {"execution": "eager"}],
)  # fmt: skip
def test_several_steps_in_one_call_are_not_always_possible(changed: dict[str, Any]) -> None:
    assert not drafts(steps_per_execution, small(**changed))


FULL = replace(OPERATIONS, class_s={"gemm": 0.0015}, busy_s=0.0015, count_per_step=100, largest=())
"""A profile in which operations fill all of the held step."""


def seen_in_turns(together_s: tuple[float, ...], **changed: Any) -> StepFacts:
    """The same step; alone it takes 1.5 ms on a held batch."""
    calls = CallFacts(steps=8, single_s=(0.0015,) * len(together_s), together_s=together_s)
    return small(calls=calls, operations=FULL, **changed)


def test_what_steps_take_less_in_one_call_is_gained_whatever_a_profile_says() -> None:
    # of 1.5 ms on a held batch 0.7 go, and 7 of 8 of Keras' 0.5: 2 / (2 - 0.7 - 0.4375)
    seen = seen_in_turns((0.0008,) * 20)
    found = only(steps_per_execution, seen)
    assert found.gain is not None
    assert (found.gain.low, found.gain.best) == pytest.approx((2 / 0.8625, 2 / 0.8625))
    assert found.settings == {"steps_per_execution": "8"}
    assert "8 steps in one call take 800 µs each, one by one 1.50 ms" in found.evidence[-1].text
    assert primary(seen).cause == "launch.steps_per_execution"


def test_the_gain_of_fewer_calls_is_as_wide_as_what_was_seen_of_them() -> None:
    # 0.6 to 1.0 ms of 1.5 by turns: the order statistics of 20 rounds take both ends
    found = only(steps_per_execution, seen_in_turns((0.0006, 0.001) * 10, python_s=0.0))
    assert found.gain is not None
    assert found.gain.best == pytest.approx(2 / (2 - 0.7))
    assert (found.gain.low, found.gain.high) == pytest.approx((2 / (2 - 0.5), 2 / (2 - 0.9)))


def test_steps_that_take_as_long_in_one_call_gain_what_keras_does_between_them() -> None:
    # 7 of 8 of 0.5 ms; a call of its own costs the step nothing
    found = only(steps_per_execution, seen_in_turns((0.0015,) * 20))
    assert found.gain is not None
    assert found.gain.best == pytest.approx(2 / (2 - 0.4375))


def test_a_difference_within_the_noise_is_no_gain() -> None:
    noisy = (0.0010, 0.0019) * 10
    assert not drafts(steps_per_execution, seen_in_turns(noisy, python_s=0.0))


def test_xla_does_not_take_the_calls_of_steps_away() -> None:
    # of 8 ms of gaps 7 are calls
    operations = OperationFacts(class_s={"gemm": 0.0115}, busy_s=0.0115, count_per_step=500)
    calls = CallFacts(steps=8, single_s=(0.02,) * 20, together_s=(0.02 - 0.006125,) * 20)
    seen = facts(device="gpu", operations=operations, calls=calls)
    assert not [one for one in drafts(no_xla, seen).values() if one.gain and one.gain.best > 1.05]


def test_a_small_batch_in_a_loop_is_launch() -> None:
    seen = small(source="loop", batch_size=2, python_s=0.0, step_s=(0.0015,) * 40)
    found = only(small_batch, seen)
    assert found.settings == {"batch_size": "8"}
    assert primary(seen).bottleneck_class == "launch"
    assert not drafts(small_batch, replace(seen, batch_size=512))


def test_starts_between_many_small_exchanges_are_a_symptom_of_these() -> None:
    # of 1.5 ms 0.8 are starting, 0.5 the exchange; 100 exchanges of 4 KB
    exchange = replace(TINY, class_s={"gemm": 0.0002, "collective": 0.0005}, busy_s=0.0007)
    seen = small(source="loop", replica_count=2, batch_size=16, python_s=0.0,
                 step_s=(0.0015,) * 40, operations=exchange)  # fmt: skip
    assert primary(seen).bottleneck_class == "launch"
    often = replace(exchange, collectives_per_step=100.0)
    assert primary(replace(seen, operations=often)).bottleneck_class == "communication"
    little = replace(often, class_s={"gemm": 0.0005, "collective": 0.0002})
    assert primary(replace(seen, operations=little)).bottleneck_class == "launch"


def test_a_short_step_without_a_profile_is_judged_by_its_arithmetic() -> None:
    # 1.5 ms for what a tenth of the peak does in 0.1 ms
    seen = small(operations=None, step_flops=1e6, peak_flops_per_s=1e11)
    found = only(steps_per_execution, seen)
    assert found.gain is not None
    assert found.gain.best == pytest.approx(2 / (2 - 0.6 * 1.9))


def test_xla_is_proposed_for_a_card_with_gaps() -> None:
    # 8 of 20 ms between kernels, at most 5 + 500 x 0.01
    operations = OperationFacts(class_s={"gemm": 0.0115}, busy_s=0.0115, count_per_step=500)
    found = only(no_xla, facts(device="gpu", operations=operations))
    assert found.gain is not None
    assert found.gain.best == pytest.approx(20 / (20 - 0.6 * 8))


def test_xla_is_not_proposed_for_a_usual_model_on_a_cpu() -> None:
    assert not drafts(no_xla, facts())
    assert not drafts(no_xla, small())


def test_xla_on_a_cpu_is_for_very_many_operations_of_microseconds() -> None:
    # 1500 of 4 us: 6 ms busy, of which 3.6 are starts, and 6 of gaps; half of 9.6 goes
    operations = OperationFacts(class_s={"elementwise": 0.006}, busy_s=0.006, count_per_step=1500)
    seen = facts(step_s=(0.012,) * 40, held_s=(0.012,) * 40, operations=operations, input=None)
    found = only(no_xla, seen)
    assert found.gain is not None
    assert (found.gain.low, found.gain.best) == pytest.approx((1.0, 12 / (12 - 0.5 * 9.6)))
    assert primary(seen).bottleneck_class == "launch"


@pytest.mark.parametrize(
    ("source", "settings"),
    [("run", None), ("loop", None), ("profile", {})],  # None: those of the table
)
def test_the_function_of_a_loop_can_be_compiled_and_a_profile_cannot(
    source: str, settings: dict[str, str] | None
) -> None:
    operations = OperationFacts(class_s={"gemm": 0.0115}, busy_s=0.0115, count_per_step=500)
    found = only(no_xla, facts(device="gpu", operations=operations, source=source))
    assert found.settings == settings


def test_a_step_of_real_work_is_not_launch() -> None:
    assert not drafts(small_batch, facts())
    assert not [one for one in drafts(steps_per_execution, facts()).values() if one.gain
                and one.gain.best >= 1.10]  # fmt: skip


def test_on_jax_a_call_for_each_step_stays() -> None:
    # Keras' loop alone, 0.5 of 2 ms, is gone around less often
    found = only(steps_per_execution, small(backend="jax", execution="xla"))
    assert found.gain is not None
    assert found.gain.best == pytest.approx(2 / (2 - 0.6 * 0.5))
