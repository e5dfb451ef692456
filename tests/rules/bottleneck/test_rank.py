"""One primary cause: the largest gain, defects beyond their limits first, healthy else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rules.bottleneck.steps import (
    HOST,
    OPERATIONS,
    answer,
    facts,
    pipeline,
    primary,
    stage,
    waiting,
)

from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.bottleneck import SPLIT_PARTS
from tfdyno.core.measure.step_facts import CallbackFacts
from tfdyno.rules.bottleneck import diagnose


def test_a_healthy_step_is_called_healthy_alone() -> None:
    told = answer(facts())
    assert [one.bottleneck_class for one in told.findings] == ["healthy"]
    assert told.primary is told.findings[0]
    assert told.primary.summary == "No known change is expected to make the step 10 % faster."
    assert told.primary.evidence[0].text.startswith("a step of 20 ms: ")
    assert told.primary.fix
    assert told.notes == ()


@pytest.mark.parametrize(
    "changed",
    [
        {"step_s": (0.0215,) * 40},  # 9 % beyond the held step
        {"operations": None},
        {"input": None},
        {"execution": "xla"},
        {"source": "loop", "waits_s": 0.0005},
        {"device": "gpu", "execution": "xla", "precision": "mixed_float16"},
        {"callbacks": (CallbackFacts(name="History", per_step_s=0.0001),)},
        {"host": replace(HOST, cpu_ratio=0.98)},
    ],
)
def test_small_departures_stay_healthy(changed: dict[str, object]) -> None:
    assert primary(facts(**changed)).bottleneck_class == "healthy"


def test_noise_is_no_finding() -> None:
    # 20 to 40 ms in turns on a noisy machine: the median's interval spans the 10 ms of waiting
    noisy = tuple(0.020 + 0.001 * (n * 7 % 21) for n in range(12))
    slow = pipeline(stage("map", "map", 0.006), batch_s=0.006)
    told = diagnose(facts(step_s=noisy, held_s=(0.024,) * 12, input=slow))
    assert told.primary.bottleneck_class == "healthy"
    assert any("not told from noise" in note for note in told.notes)


def test_the_larger_gain_leads() -> None:
    slow = pipeline(stage("map(load)", "map", 0.040))
    told = answer(
        waiting(slow, step_s=0.070, callback_s=0.010,
                callbacks=(CallbackFacts(name="TensorBoard", per_step_s=0.010),))
    )  # fmt: skip
    classes = [one.bottleneck_class for one in told.findings]
    assert classes[0] == "input"
    assert "callback" in classes
    gains = [one.expected_gain.best for one in told.findings if one.expected_gain]
    assert gains[0] >= max(gains) / 1.05


def test_of_equal_gains_the_simpler_change_leads() -> None:
    # the map and the prefetch would each hide 18 ms behind the step of 20
    slow = pipeline(stage("map(load)", "map", 0.018), batch_s=0.018)
    told = answer(waiting(slow, step_s=0.038))
    causes = [one.cause for one in told.findings]
    assert causes[0] == "input.missing_prefetch"
    assert "input.sequential_map" in causes


def test_findings_of_less_than_five_per_cent_are_left_out() -> None:
    told = answer(waiting(pipeline(stage("map(load)", "map", 0.040))))
    assert all(one.expected_gain and one.expected_gain.best >= 1.05 for one in told.findings)


@pytest.mark.parametrize("step_s", [(), (0.0,) * 9])
def test_no_steps_are_no_diagnosis(step_s: tuple[float, ...]) -> None:
    with pytest.raises(UsageError, match="no steady step was seen"):
        diagnose(facts(step_s=step_s))


def test_where_memory_is_nearly_full_no_larger_batch_is_proposed() -> None:
    tiny = replace(OPERATIONS, class_s={"gemm": 0.002}, busy_s=0.002, count_per_step=900)
    few = {"device": "gpu", "step_s": (0.010,) * 40, "held_s": (0.010,) * 40, "operations": tiny}
    room = answer(facts(**few, memory_limit_bytes=100, memory_used_bytes=10))
    full = answer(facts(**few, memory_limit_bytes=100, memory_used_bytes=95))
    assert "launch.small_batch" in [one.cause for one in room.findings]
    causes = [one.cause for one in full.findings]
    assert "launch.small_batch" not in causes
    assert "memory_pressure.near_limit" in causes


def test_where_memory_is_nearly_full_replicas_are_given_no_larger_batch() -> None:
    exchange = replace(OPERATIONS, class_s={"gemm": 0.008, "collective": 0.010})
    seen = facts(operations=exchange, replica_count=2, memory_limit_bytes=100, memory_used_bytes=99)
    found = {one.cause: one for one in answer(seen).findings}
    assert found["communication.small_batch"].settings == {}


def test_compute_is_told_by_class() -> None:
    # 18 ms of operations
    told = answer(facts())
    assert told.compute_s == pytest.approx(
        {"gemm": 0.010, "elementwise": 0.006, "optimizer": 0.002}
    )
    assert tuple(told.split_s) == SPLIT_PARTS


def test_the_notes_of_the_facts_stand_in_the_answer() -> None:
    told = diagnose(facts(notes=("steps came from the op pattern",), held_s=()))
    assert told.notes[0] == "steps came from the op pattern"
    note = "No step on a held batch was measured"
    assert told.notes[1] == f"{note}: waiting for data is what the profile leaves."
    assert answer(facts(held_s=(), operations=None)).notes[0] == f"{note}."


@given(
    step=st.floats(1e-4, 1.0),
    held=st.floats(0.0, 1.0),
    batch=st.floats(0.0, 1.0),
    ahead=st.booleans(),
    kind=st.sampled_from(["dataset", "arrays", "generator", "pydataset", "other"]),
    device=st.sampled_from(["cpu", "gpu"]),
    execution=st.sampled_from(["graph", "xla", "eager"]),
    source=st.sampled_from(["run", "loop", "profile"]),
    has_profile=st.booleans(),
)
def test_whatever_was_seen_there_is_one_answer_in_order(
    step: float, held: float, batch: float, ahead: bool, kind: str, device: str, execution: str,
    source: str, has_profile: bool,
) -> None:  # fmt: skip
    told = diagnose(
        facts(
            step_s=(step,) * 9, held_s=(held * step,) * 9, device=device, execution=execution,
            source=source, operations=OPERATIONS if has_profile else None,
            input=pipeline(stage("map", "map", batch), batch_s=batch, prefetches=ahead, kind=kind),
        )
    )  # fmt: skip
    assert told.primary is told.findings[0]
    for one in told.findings:
        assert one.summary
        assert one.fix
        assert one.evidence
        gain = one.expected_gain
        assert gain is None or 1.0 <= gain.low <= gain.best <= gain.high
    causes = [one.cause for one in told.findings]
    assert len(causes) == len(set(causes))


def test_shares_add_up_to_the_batch_and_rates_follow() -> None:
    # 40 ms a batch: 30 and 10 ms of CPU time, one element at a time
    slow = pipeline(stage("map(load)", "map", 0.030, output_bytes=3_000_000),
                    stage("batch", "batch", 0.010), batch_s=0.040)  # fmt: skip
    told = answer(waiting(slow))
    load, batch = told.stages
    assert (load.title, load.place) == ("map(load)", "train.py:7")
    assert load.batch_s == pytest.approx(0.030)
    assert load.samples_per_s == pytest.approx(32 / 0.030)
    assert load.bytes_per_s == pytest.approx(3_000_000 / 0.030)
    assert batch.samples_per_s == pytest.approx(3200.0)  # 32 / 0.010
    assert (told.batch_s, told.held_s) == pytest.approx((0.040, 0.020))


def test_what_works_on_several_elements_takes_less_of_the_time() -> None:
    # 40 ms of CPU time on the 4 CPUs of the machine, 10 ms on one: equal halves of 20 ms
    both = pipeline(stage("map(load)", "map", 0.040, parallel_calls=-1),
                    stage("batch", "batch", 0.010), batch_s=0.020)  # fmt: skip
    assert [one.batch_s for one in answer(waiting(both)).stages] == pytest.approx([0.010, 0.010])


def test_the_samples_are_those_of_all_replicas() -> None:
    slow = pipeline(stage("map(load)", "map", 0.040))
    (one,) = answer(waiting(slow, replica_count=2)).stages
    assert one.samples_per_s == pytest.approx(64 / 0.040)


def test_a_stage_below_what_the_clock_tells_has_no_rate() -> None:
    slow = pipeline(stage("map(load)", "map", 0.040), stage("take", "take", 0.00001))
    assert answer(waiting(slow)).stages[1].samples_per_s == 0.0


def test_shares_that_would_be_guessed_are_not_told() -> None:
    untimed = pipeline(stage("map(load)", "map", 0.0), stage("batch", "batch", 0.0))
    assert answer(waiting(untimed)).stages == ()
    assert answer(facts(input=None)).stages == ()
    alone = waiting(pipeline(stage("map(load)", "map", 0.040)))
    assert answer(replace(alone, input=replace(alone.input, batch_s=()))).stages == ()  # type: ignore[type-var]


def test_what_is_not_looked_at_on_jax_is_said() -> None:
    assert any(note.startswith("Not looked at on JAX") for note in diagnose(
        facts(backend="jax", execution="xla")).notes)  # fmt: skip
    assert not any("JAX" in note for note in diagnose(facts()).notes)
