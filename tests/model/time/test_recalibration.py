from __future__ import annotations

from dataclasses import replace
from math import sqrt

import pytest
from tests.anchors import SUBJECT, anchor
from tests.model.time.test_estimate import estimate as estimated
from tests.view.answers import estimate

from tfdyno.core.choose.recalibration import Recalibration, Subject
from tfdyno.model.time.recalibration import recalibrated, recalibration

A100 = "a100-sxm4-80gb"


def test_the_measured_card_takes_its_factor_in_full() -> None:
    found = recalibration([anchor(1.2), anchor(2.0, card=A100)], SUBJECT, "t4")
    assert found.own_card
    assert found.factor_ratio == pytest.approx(1.2)
    assert found.anchors == (anchor(1.2),)


def test_several_measurements_of_a_card_count_by_their_median() -> None:
    several = [anchor(1.0, batch_size=8), anchor(1.1, batch_size=16), anchor(9.0, batch_size=32)]
    assert recalibration(several, SUBJECT, "t4").factor_ratio == pytest.approx(1.1)


def test_another_card_takes_over_half_of_the_logarithm() -> None:
    found = recalibration([anchor(1.2)], SUBJECT, A100)
    assert not found.own_card
    assert found.factor_ratio == pytest.approx(sqrt(1.2))


def test_of_two_measured_cards_two_thirds_of_the_mean_logarithm_are_taken_over() -> None:
    # sqrt(1.2 * 1.5), however often one of them was measured
    anchors = [anchor(1.2), anchor(1.2, batch_size=8), anchor(1.5, card="l4")]
    expected = sqrt(1.2 * 1.5) ** (2 / 3)
    assert recalibration(anchors, SUBJECT, A100).factor_ratio == pytest.approx(expected)


@pytest.mark.parametrize(
    "other",
    [
        replace(SUBJECT, title="other"), replace(SUBJECT, parameter_count=7),
        replace(SUBJECT, mode="infer"), replace(SUBJECT, policy="mixed_float16"),
        replace(SUBJECT, strict=True), replace(SUBJECT, execution="graph"),
    ],
)  # fmt: skip
def test_another_workload_is_not_moved(other: Subject) -> None:
    assert recalibration([anchor()], other, "t4") == Recalibration()


def test_without_xla_other_cards_are_moved_as_well() -> None:
    graph = replace(SUBJECT, execution="graph")
    anchors = [anchor(1.2, subject=graph)]
    assert recalibration(anchors, graph, "t4").factor_ratio == pytest.approx(1.2)
    assert recalibration(anchors, graph, A100).factor_ratio == pytest.approx(sqrt(1.2))


def test_times_energy_and_rates_move_together() -> None:
    before = estimate(A100)
    after = recalibrated(before, Recalibration(factor_ratio=1.25, anchors=(anchor(1.25),)))
    assert after.step_s.best == pytest.approx(1.25 * before.step_s.best)
    assert after.step_s.high / after.step_s.low == pytest.approx(
        before.step_s.high / before.step_s.low
    )  # a recalibration that says nothing of the width


def test_a_measurement_narrows_the_interval_around_the_moved_time() -> None:
    before = estimate(A100)
    after = recalibrated(
        before, Recalibration(factor_ratio=1.25, anchors=(anchor(1.25),), width_ratio=0.5)
    )
    for wide, narrow in (
        (before.step_s, after.step_s),
        (before.samples_per_s, after.samples_per_s),
    ):
        assert narrow.high / narrow.best == pytest.approx(sqrt(wide.high / wide.best))
        assert narrow.best / narrow.low == pytest.approx(sqrt(wide.best / wide.low))
    own = recalibration([anchor(1.2)], SUBJECT, "t4")
    one = recalibration([anchor(1.2)], SUBJECT, A100)
    two = recalibration([anchor(1.2), anchor(1.5, card="l4")], SUBJECT, A100)
    # half the variance is the card's; of the workload's half 1 / (n + 1) stays
    assert (one.width_ratio, two.width_ratio) == pytest.approx((sqrt(3 / 4), sqrt(2 / 3)))
    assert own.width_ratio < two.width_ratio


def test_energy_mfu_and_the_parts_of_the_time_move_with_it() -> None:
    before = estimate(A100)
    after = recalibrated(before, Recalibration(factor_ratio=1.25, anchors=(anchor(1.25),)))
    assert after.samples_per_s.best == pytest.approx(before.samples_per_s.best / 1.25)
    assert after.mfu_ratio == pytest.approx(before.mfu_ratio / 1.25)
    assert after.energy_j_per_step.best == pytest.approx(1.25 * before.energy_j_per_step.best)
    assert sum(after.terms_s.values()) == pytest.approx(1.25 * sum(before.terms_s.values()))
    for one, other in zip(after.layers, before.layers, strict=True):
        assert one.step_s == pytest.approx(1.25 * other.step_s)
    for point, old in zip(after.roofline, before.roofline, strict=True):
        assert point.rate_flops_per_s * point.time_s == pytest.approx(
            old.rate_flops_per_s * old.time_s
        )
    assert after.sources[-1] == "own measurement 0123456789ab on t4, 2026-11-21"


@pytest.mark.parametrize("factor", [0.2, 0.8, 3.0])
def test_the_exposed_exchange_moves_with_the_step_that_it_is_part_of(factor: float) -> None:
    before = replace(estimate(A100), exposed_s=0.4 * estimate(A100).step_s.best)
    after = recalibrated(before, Recalibration(factor_ratio=factor, anchors=(anchor(factor),)))
    assert after.exposed_s == pytest.approx(factor * before.exposed_s)
    assert after.exposed_s < after.step_s.best


def test_memory_and_compile_time_stay() -> None:
    before = estimate(A100)
    after = recalibrated(before, Recalibration(factor_ratio=2.0, anchors=(anchor(),)))
    assert after.peak_memory_bytes == before.peak_memory_bytes
    assert after.compile_s == before.compile_s
    assert after.fits == before.fits


def test_without_an_anchor_nothing_moves() -> None:
    assert recalibrated(estimate(A100), Recalibration()) == estimate(A100)


def test_an_explanation_keeps_the_model_and_names_the_factor() -> None:
    asked = estimated(explained=True)
    found = Recalibration(factor_ratio=1.25, anchors=(anchor(1.25),), width_ratio=0.8)
    moved = recalibrated(asked, found).explanation
    assert asked.explanation
    assert moved
    assert replace(moved, width=asked.explanation.width, measured_ratio=1.0) == asked.explanation
    assert recalibrated(asked, found).step_s.best == pytest.approx(moved.step_s * 1.25)
    assert moved.width.log_half_width_ratio == pytest.approx(
        0.8 * asked.explanation.width.log_half_width_ratio
    )
    assert (
        moved.width.reasons[-1]
        == "80% of the width is left: you measured the workload on another card"
    )
    assert recalibrated(estimated(), Recalibration(factor_ratio=1.25)).explanation is None
