"""Sentences say what was found: the number, the verdict, the doubts, what is not in it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.measurements import measurement, run
from tests.view import benches

from tfdyno.core.measure.measurement import Protocol, Verdict
from tfdyno.view.bench import findings as bench_findings
from tfdyno.view.bench.runs import shown_runs


def test_one_measurement_is_answered_by_its_step() -> None:
    told = [benches.told(measurement([[0.048, 0.05, 0.052] * 7, *[[0.05, 0.051] * 10] * 4]))]
    assert bench_findings.headline(told, None) == "convnet takes 50.5 ms a step at batch 64"
    assert "5 runs in fresh processes and 101 samples" in bench_findings.answer(told, None)


@pytest.mark.parametrize(
    ("verdict", "ratio", "expected"),
    [
        ("slower", 0.95, "B is 5 % slower than A"),
        ("faster", 1.25, "B is 25 % faster than A"),
        ("faster", 2.5, "B is 150 % faster than A"),
        ("no_difference", 1.002, "No difference between A and B"),
        ("not_comparable", 0.0, "A and B do not compare"),
    ],
)
def test_two_are_answered_by_the_verdict(verdict: Verdict, ratio: float, expected: str) -> None:
    told, comparison = benches.pair()
    changed = replace(comparison, verdict=verdict, ratio=ratio, reason="task.title differs.")
    assert bench_findings.headline(told, changed) == expected
    assert "task.title differs." in bench_findings.answer(told, changed)


def test_accuracy_is_shown_for_real_data_only() -> None:
    runs = tuple(run([0.1] * 20, order=n, metrics={"accuracy": 0.90 + n / 100}) for n in range(3))
    one = replace(measurement([[0.1]]), runs=runs)
    (box,) = bench_findings.boxes([benches.told(one)])
    assert ("Accuracy", "0.91", "0.9–0.92 over runs") in box["numbers"]  # type: ignore[operator]
    made_up = replace(one, protocol=Protocol(data="synthetic"))
    (box,) = bench_findings.boxes([benches.told(made_up)])
    assert "Accuracy" not in str(box)


def test_energy_stands_in_the_box_of_a_card_only() -> None:
    (on_gpu,) = bench_findings.boxes([benches.told(benches.on_gpu())])
    (on_cpu,) = bench_findings.boxes([benches.told(benches.on_cpu())])
    assert "Energy" in str(on_gpu)
    assert "Energy" not in str(on_cpu)


def test_doubts_name_their_side_and_what_was_left_out_is_told() -> None:
    hot = benches.told(benches.on_gpu())
    assert "lowered its clock" in bench_findings.doubts([hot])[0]
    assert bench_findings.doubts([hot, hot])[0].startswith("A: ")
    said = bench_findings.left_out([hot], shown_runs([hot]))
    assert said[1].startswith("Warm-up: 192 steps in 48 samples")
    noted = benches.told(benches.on_cpu())
    said = bench_findings.left_out([noted], shown_runs([noted]))
    assert any("ModelCheckpoint" in one for one in said)


def test_what_was_checked_depends_on_the_device() -> None:
    assert "card" in bench_findings.checked([benches.told(benches.on_gpu())])
    assert "card" not in bench_findings.checked([benches.told(benches.on_cpu())])


def test_runs_without_a_steady_state_are_counted() -> None:
    restless = run([0.1] * 20, steady_from=20)
    told = [benches.told(replace(measurement([[0.1] * 20]), runs=(restless, run([0.1] * 20))))]
    found = bench_findings.over_time(shown_runs(told))
    assert found.heading == "1 of 2 runs found a steady state"


def test_no_telemetry_is_said() -> None:
    told = [benches.told(measurement([[0.1] * 20]))]
    assert bench_findings.telemetry(told, shown_runs(told)).heading == "No telemetry was recorded"
