from __future__ import annotations

from dataclasses import replace

import pytest
from tests.measurements import TASK, measurement, run

from tfdyno.core.measure.measurement import BenchRun, CardTelemetry, Telemetry
from tfdyno.model.measure.summary import summary


def test_the_step_is_the_median_of_the_medians_of_the_runs() -> None:
    found = summary(measurement([[0.1, 0.1, 9.0], [0.2, 0.2, 0.2], [0.4, 0.4, 0.4]]))
    assert found.median_s == pytest.approx(0.2)
    assert found.run_count == 3
    assert found.sample_count == 9
    assert found.interval_s[0] <= 0.2 <= found.interval_s[1]


def test_warm_up_and_excluded_samples_stay_out() -> None:
    one = run([5.0, 0.1, 3.0, 0.1], steady_from=1, excluded=(2,))
    found = summary(replace(measurement([]), runs=(one,)))
    assert found.trimmed_mean_s == pytest.approx(0.1)
    assert found.sample_count == 2


def test_throughput_is_over_all_replicas() -> None:
    # 3 replicas x 64 samples in 0.5 s
    task = replace(TASK, replica_count=3)
    assert summary(measurement([[0.5]], task=task)).throughput_per_s == pytest.approx(384.0)


def test_the_trimmed_mean_weighs_samples_by_their_steps() -> None:
    one = run([0.1, 0.4], steps_per_sample=(9, 1))
    assert summary(replace(measurement([]), runs=(one,))).trimmed_mean_s == pytest.approx(0.13)


def test_first_step_is_a_median_and_memory_the_most_of_all_runs() -> None:
    runs = tuple(run([0.1], first_step_s=f, peak_memory_bytes=m)
                 for f, m in ((3.0, 10), (9.0, 30), (4.0, 20)))  # fmt: skip
    found = summary(replace(measurement([]), runs=runs))
    assert found.first_step_s == 4.0
    assert found.peak_memory_bytes == 30


def card(index: int, utilisation: tuple[float, ...], power_w: tuple[float, ...]) -> CardTelemetry:
    return CardTelemetry(index=index, utilisation_ratio=utilisation, power_w=power_w)


def with_cards(*cards: CardTelemetry) -> BenchRun:
    """Steady from 3.5 s to 5.5 s: the points at 4 s and 5 s count."""
    telemetry = Telemetry(at_s=(3.0, 4.0, 5.0, 6.0), cards=cards)
    return run([0.5] * 4, telemetry=telemetry)


def test_power_is_the_sum_over_cards_and_energy_its_product_with_the_step() -> None:
    cards = (
        card(0, (0.0, 0.8, 1.0, 0.0), (50.0, 300.0, 310.0, 50.0)),
        card(1, (0.0, 0.6, 0.8, 0.0), (50.0, 200.0, 190.0, 50.0)),
    )
    found = summary(replace(measurement([]), runs=(with_cards(*cards),)))
    assert found.power_w == pytest.approx(500.0)
    assert found.energy_j_per_step == pytest.approx(250.0)
    assert found.utilisation_ratio == pytest.approx(0.8)


def test_a_point_that_could_not_be_read_is_left_out() -> None:
    one = with_cards(card(0, (0.0, -1.0, 1.0, 0.0), (-1.0, -1.0, 300.0, 1.0)))
    found = summary(replace(measurement([]), runs=(one,)))
    assert found.power_w == pytest.approx(300.0)
    assert found.utilisation_ratio == pytest.approx(1.0)


def test_what_was_not_measured_is_none() -> None:
    found = summary(measurement([[0.1]]))
    assert (found.utilisation_ratio, found.power_w, found.energy_j_per_step) == (None, None, None)


def test_instabilities_come_along() -> None:
    assert {one.kind for one in summary(measurement([[0.1]])).instabilities} == {"few_samples"}


def test_nothing_can_be_summarised_without_a_sample() -> None:
    with pytest.raises(ValueError, match="no run"):
        summary(replace(measurement([]), runs=(run([]),)))
