"""The parts of a step add up to it, whatever was measured, and none is negative."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rules.bottleneck.steps import GOOD_INPUT, HOST, OPERATIONS, facts, pipeline, waiting

from tfdyno.core.measure.bottleneck import SPLIT_PARTS
from tfdyno.core.measure.step_facts import CallbackFacts, OperationFacts, RetraceFacts
from tfdyno.rules.bottleneck.split import split_of

seconds = st.floats(0.0, 10.0, allow_nan=False)
times = st.lists(seconds, min_size=1, max_size=30).map(tuple)


def parts(**changed: Any) -> dict[str, float]:
    found = split_of(facts(**changed)).parts_s
    return {name: round(s, 9) for name, s in found.items() if s > 1e-12}


@settings(max_examples=300, deadline=None)
@given(
    step_s=times.filter(lambda each: max(each) > 1e-9),
    held_s=st.one_of(st.just(()), times),
    loose=st.tuples(seconds, seconds, seconds, seconds, seconds),
    batch_s=times,
    prefetches=st.booleans(),
    busy_s=seconds,
    classes=st.dictionaries(st.sampled_from(["gemm", "collective", "other", "data_movement"]),
                            seconds),
    has_profile=st.booleans(),
    source=st.sampled_from(["run", "loop", "profile"]),
    execution=st.sampled_from(["graph", "eager"]),
)  # fmt: skip
def test_parts_add_up_and_none_is_negative(
    step_s: tuple[float, ...], held_s: tuple[float, ...], loose: tuple[float, ...],
    batch_s: tuple[float, ...], prefetches: bool, busy_s: float, classes: dict[str, float],
    has_profile: bool, source: str, execution: str,
) -> None:  # fmt: skip
    callback_s, python_s, waits_s, copy_s, trace_s = loose
    profile = OperationFacts(class_s=classes, count_per_step=10, busy_s=busy_s, copy_s=copy_s)
    found = split_of(
        facts(
            step_s=step_s, held_s=held_s, callback_s=callback_s, python_s=python_s,
            waits_s=waits_s, source=source, execution=execution,
            input=replace(GOOD_INPUT, batch_s=batch_s, prefetches=prefetches),
            operations=profile if has_profile else None,
            callbacks=(CallbackFacts(name="ModelCheckpoint", per_step_s=callback_s),),
            retraces=(RetraceFacts(function="f", traces=9, calls=9, seconds_s=trace_s),),
        )
    )  # fmt: skip
    assert tuple(found.parts_s) == SPLIT_PARTS
    assert all(s >= 0.0 for s in found.parts_s.values())
    assert sum(found.parts_s.values()) == pytest.approx(found.step_s, rel=1e-9, abs=1e-12)
    if found.compute_s:
        assert sum(found.compute_s.values()) == pytest.approx(
            found.parts_s["compute"], rel=1e-6, abs=1e-9
        )


def test_a_healthy_step_is_computing() -> None:
    # 20 = 18 busy + 1.5 of starting + 0.5 that the step takes beyond the held one
    assert parts() == {"compute": 0.018, "launch": 0.0015, "host": 0.0003, "input": 0.0002}


def test_without_prefetch_the_whole_batch_is_waited_for() -> None:
    found = split_of(waiting(pipeline(batch_s=0.040)))
    assert found.parts_s["input"] == pytest.approx(0.040)


def test_with_prefetch_only_what_the_step_does_not_hide_is_waiting() -> None:
    # 20 ms of step behind 30 ms of pipeline: 10 ms are waited for, not 30
    given_ = replace(GOOD_INPUT, batch_s=(0.030,) * 9)
    found = split_of(facts(step_s=(0.030,) * 9, held_s=(0.020,) * 9, input=given_))
    assert found.parts_s["input"] == pytest.approx(0.010)


def test_a_fast_pipeline_that_runs_ahead_is_not_blamed() -> None:
    # 10 ms beyond the held step, but the pipeline needs 4 ms on a twentieth of the CPUs
    found = split_of(facts(step_s=(0.030,) * 40, held_s=(0.020,) * 40))
    assert found.parts_s["input"] == pytest.approx(0.0002)
    assert found.parts_s["host"] == pytest.approx(0.0098)


def test_nobody_waits_much_longer_than_a_batch_takes() -> None:
    # 40 ms beyond the held step, but a batch takes 10 alone and at most 15 beside the step
    found = split_of(waiting(pipeline(batch_s=0.010)))
    assert found.parts_s["input"] == pytest.approx(0.015)
    assert found.parts_s["host"] == pytest.approx(0.025)


def test_callbacks_and_python_come_before_waiting() -> None:
    # 40 beyond the held 20: 5 checkpoint, 7 other callbacks, 8 Python, so that 20 are waiting
    found = split_of(
        waiting(
            pipeline(batch_s=0.040),
            callback_s=0.012,
            callbacks=(CallbackFacts(name="ModelCheckpoint", per_step_s=0.005),),
            python_s=0.008,
        )
    )
    told = {name: round(s, 6) for name, s in found.parts_s.items()}
    assert (told["checkpoint"], told["callback"], told["input"]) == (0.005, 0.007, 0.020)
    assert found.between_s == pytest.approx(0.008)


def test_a_loop_that_times_its_reading_waits_for_that_alone() -> None:
    found = split_of(waiting(pipeline(batch_s=0.040), source="loop", waits_s=0.030))
    assert found.parts_s["input"] == pytest.approx(0.030)


def test_a_machine_that_was_slower_at_the_second_look_fills_no_step_with_computing() -> None:
    # held: 39 ms of which 20 in operations; a step of the training took 20 ms
    slow = replace(OPERATIONS, busy_s=0.020)
    found = split_of(facts(held_s=(0.039,) * 20, operations=slow, execution="eager"))
    assert found.parts_s["compute"] == pytest.approx(0.020 * 20 / 39)
    assert found.inside_s == pytest.approx(0.020 * 19 / 39)


def test_a_loop_does_not_wait_longer_for_data_than_a_batch_takes() -> None:
    # reading waits 30 ms for a step that was only started: the batch itself takes 2
    found = split_of(waiting(pipeline(batch_s=0.002), source="loop", waits_s=0.030))
    assert found.parts_s["input"] == pytest.approx(0.003)


def test_python_inside_of_the_step_is_not_starting() -> None:
    busy = replace(OPERATIONS, busy_s=0.008)
    assert parts(operations=busy, execution="eager")["host"] == pytest.approx(0.0118, abs=1e-6)


def test_an_idle_device_beyond_what_starting_takes_is_python() -> None:
    # 19.5 held, 2 busy, starting at most 5 + 100 x 0.01: 11.5 are not explained
    busy = replace(OPERATIONS, busy_s=0.002)
    assert split_of(facts(operations=busy)).unseen_s == pytest.approx(0.0115)


def test_exchange_hidden_behind_computing_is_computing() -> None:
    operations = replace(OPERATIONS, class_s={"gemm": 0.012, "collective": 0.006},
                         collective_exposed_s=0.004, collective_hidden_s=0.004)  # fmt: skip
    assert parts(operations=operations)["communication"] == pytest.approx(0.003)


def test_the_split_of_a_profile_is_taken_as_it_is() -> None:
    # 8 + 2 of a mean of 10 ms, told for a typical step of 20 ms
    assert parts(split_s={"compute": 0.008, "copy": 0.002}) == {"compute": 0.016, "copy": 0.004}


def test_without_a_held_step_the_gaps_of_the_profile_are_starting_then_host() -> None:
    # 20 - 18 busy = 2 beyond: 100 operations may take 1 ms to start
    found = parts(held_s=(), source="profile", input=None)
    assert found == {"compute": 0.018, "launch": 0.001, "host": 0.001}


def test_parts_below_five_per_cent_or_the_noise_do_not_count() -> None:
    assert split_of(facts()).floor_s == pytest.approx(0.001)
    noisy = tuple(0.010 + 0.001 * n for n in range(21))
    assert split_of(facts(step_s=noisy, host=HOST)).floor_s > 0.003


def test_what_an_epoch_costs_is_spread_over_its_steps() -> None:
    """A step of 60 ms; each epoch of 20 steps ends with 2 s of validation and 0.4 s of saving."""
    ends = (
        CallbackFacts(name="validation", per_epoch_s=2.0),
        CallbackFacts(name="ModelCheckpoint", per_epoch_s=0.4),
    )
    plain = split_of(facts(step_s=(0.060,) * 9))
    found = split_of(facts(step_s=(0.060,) * 9, callbacks=ends, steps_per_epoch=20))
    assert found.step_s == pytest.approx(plain.step_s + 0.100 + 0.020)
    assert found.parts_s["validation"] == pytest.approx(0.100)
    assert found.parts_s["checkpoint"] == pytest.approx(0.020)
    assert sum(found.parts_s.values()) == pytest.approx(found.step_s)
