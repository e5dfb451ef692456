from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.measurements import measurement, run

from tfdyno.core.measure.measurement import BenchRun, CardTelemetry, Telemetry
from tfdyno.model.measure.instability import instabilities

if TYPE_CHECKING:
    from collections.abc import Sequence

CALM = [0.1] * 40


def found(runs: Sequence[BenchRun]) -> dict[str, str]:
    return {one.kind: one.text for one in instabilities(replace(measurement([]), runs=tuple(runs)))}


def levels(*ratios: float) -> list[BenchRun]:
    return [run([0.1 * ratio] * 40, order=at) for at, ratio in enumerate(ratios)]


def test_a_calm_measurement_has_none() -> None:
    assert found(levels(1, 1.01, 0.99, 1, 1.005)) == {}


def test_runs_without_a_steady_state_are_counted() -> None:
    runs = levels(1, 1, 1, 1, 1, 1)
    runs[2] = replace(runs[2], steady_from=40)
    assert found(runs)["no_steady_state"] == (
        "1 of 6 runs found no steady state; they are left out."
    )


def test_few_runs_and_few_samples_are_told() -> None:
    assert found(levels(1, 1))["few_samples"] == "2 runs count; the protocol asks for 5."
    short = [run([0.1] * 12) for _ in range(5)]
    assert "12 samples" in found(short)["few_samples"]


def test_a_spread_between_runs_is_noise_with_its_size() -> None:
    # logs of 1 and 1.1: 0 and 0.0953; three and two of them: standard deviation 0.0522
    assert "spread by 5.2 %" in found(levels(1, 1.1, 1, 1.1, 1))["noise"]


def test_a_trend_over_the_runs_is_a_drift() -> None:
    told = found(levels(1, 1.0151, 1.029, 1.0451, 1.06))
    assert told["drift"] == "Steps became 6 % slower from the first to the last of 5 runs."


def test_runs_in_no_order_are_no_drift() -> None:
    assert "drift" not in found(levels(1.06, 1.0, 1.03, 1.015, 1.045))


def test_runs_that_change_alike_within_are_a_drift() -> None:
    draw = random.Random(1)
    runs = [
        run([0.1 * (1 - 0.1 * at / 60) * (1 + draw.gauss(0, 0.003)) for at in range(60)], order=n)
        for n in range(5)
    ]
    # middles of first and last third: 1 - 0.1 * 9.5 / 60 = 0.984 and 0.918: 6.8 % faster
    assert found(runs)["drift"] == (
        "Within a run, steps became 6.8 % faster from its first to its last third."
    )


def observed(**changes: object) -> list[BenchRun]:
    """Five runs steady from 3.5 s to 23.5 s, telemetry at 10 and 20 s."""
    telemetry = replace(Telemetry(at_s=(1.0, 10.0, 20.0)), **changes)  # type: ignore[arg-type]
    return [run([0.5] * 40, order=at, telemetry=telemetry) for at in range(5)]


def test_throttling_has_its_reason_and_share_of_the_steady_part() -> None:
    reasons = ((), ("software power cap",), ())
    told = found(observed(cards=(CardTelemetry(index=0, throttle=reasons),)))
    assert "software power cap 50 % of the time" in told["throttling"]


def test_reasons_outside_the_steady_part_do_not_count() -> None:
    reasons = (("software power cap",), (), ())
    assert found(observed(cards=(CardTelemetry(index=0, throttle=reasons),))) == {}


@pytest.mark.parametrize(("held_bytes", "told"), [(100 << 20, False), (3 << 30, True)])
def test_a_card_is_busy_when_others_hold_much_of_it(held_bytes: int, told: bool) -> None:
    cards = (CardTelemetry(index=0, other_memory_bytes=(0, 0, held_bytes)),)
    texts = found(observed(cards=cards))
    assert ("busy_card" in texts) == told
    assert not told or "3 GiB" in texts["busy_card"]


def test_a_busy_host_is_told_with_its_share() -> None:
    assert "30 %" in found(observed(other_cpu_ratio=(0.0, 0.2, 0.4)))["busy_host"]
    assert found(observed(other_cpu_ratio=(1.0, 0.02, 0.04))) == {}
    assert found(observed(other_cpu_ratio=(0.0, -1.0, 0.04))) == {}
