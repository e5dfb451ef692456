"""What a bench wrote becomes facts of its steps."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.measurements import measurement
from tests.view import benches

from tfdyno.jobs.diagnose.recorded_run import LEFT_OUT, bench_facts


def test_steps_of_all_judged_runs_count() -> None:
    one = benches.on_cpu(runs=5)
    found = bench_facts(one)
    assert len(found.step_s) == 5 * benches.COUNT
    assert found.steps_seen == 5 * benches.COUNT * benches.STEPS
    assert (found.title, found.device, found.batch_size) == ("small_resnet", "cpu", 64)
    assert LEFT_OUT in found.notes
    assert found.host.cpu_ratio == pytest.approx(0.85, abs=0.05)
    assert found.host.other_cpu_ratio == pytest.approx(0.03, abs=1e-9)  # -1: could not be read


def test_the_card_is_told_with_its_limits_and_why_it_was_slow() -> None:
    (card,) = bench_facts(benches.on_gpu(runs=2)).cards
    assert card.busy_ratio == pytest.approx(0.93, abs=0.03)
    assert (card.name, card.power_limit_w, card.clock_limit_hz) == ("NVIDIA L4", 72.0, 2.04e9)
    assert card.reasons == ("power_cap",)
    assert 0.0 < card.lowered_ratio < 0.5  # in the last run, after 9 s
    assert card.other_memory_bytes == 1 << 28


def test_instabilities_are_told() -> None:
    noisy = replace(benches.on_cpu(), runs=measurement([[0.1] * 40, [0.2] * 40]).runs)
    assert any("medians of the runs spread" in note for note in bench_facts(noisy).notes)


def test_the_course_is_that_of_the_run_in_the_middle() -> None:
    runs = measurement([[0.3] * 12, [0.1] * 12, [0.2] * 12])
    found = bench_facts(runs).timeline
    assert found
    assert found.whole_s == (0.2,) * 12
    assert found.what == "run 3 of 3, the one in the middle"


def test_samples_that_begin_an_epoch_are_marked() -> None:
    one = measurement([[0.1] * 20])
    run = replace(one.runs[0], excluded=(6,), samples_s=(*(0.1,) * 6, 0.5, *(0.1,) * 13),
                  steps_per_sample=(3,) * 20)  # fmt: skip
    found = bench_facts(replace(one, runs=(run,)))
    assert found.timeline
    (stall,) = found.timeline.stalls
    assert (stall.step, stall.steps, stall.whole_s, stall.is_first_of_epoch) == (21, 3, 0.5, True)
    assert max(found.step_s) == 0.1


def test_memory_that_still_fills_in_the_first_epoch_is_no_leak() -> None:
    one = benches.on_cpu(runs=1)
    run = one.runs[0]
    told = run.telemetry
    grows = tuple(int(1e9 + 1e8 * at_s) for at_s in told.at_s)
    runs = (replace(run, telemetry=replace(told, memory_bytes=grows)),)
    assert bench_facts(replace(one, runs=runs)).growth == ()  # an epoch of unknown length
    whole = replace(one.task, samples_per_epoch=10**9)
    assert bench_facts(replace(one, runs=runs, task=whole)).growth == ()
