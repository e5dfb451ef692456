"""Operations that move bytes: XLA and 16 bits help on a card."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.rules.bottleneck.steps import OPERATIONS, drafts, facts, only, primary

from tfdyno.rules.bottleneck.memory_bandwidth import channels, fusion, precision

MOVING = replace(OPERATIONS, class_s={"gemm": 0.002, "normalisation": 0.008, "elementwise": 0.008})


def test_fusion_takes_away_part_of_what_is_moved() -> None:
    # 16 of 20 ms, 45 % of them go
    seen = facts(device="gpu", operations=MOVING)
    found = only(fusion, seen)
    assert found.gain is not None
    assert found.gain.best == pytest.approx(20 / (20 - 0.45 * 16))
    assert primary(seen).cause == "memory_bandwidth.fusion"


def test_half_of_the_bytes_are_a_lever_under_xla() -> None:
    seen = facts(device="gpu", operations=MOVING, execution="xla")
    assert not drafts(fusion, seen)
    assert primary(seen).cause == "memory_bandwidth.precision"


def test_a_cpu_has_none_of_these_levers() -> None:
    assert not drafts(fusion, facts(operations=MOVING))
    assert not drafts(precision, facts(operations=MOVING))
    assert primary(facts(operations=MOVING)).bottleneck_class == "healthy"


def test_keras_cannot_compile_a_step_of_replicas() -> None:
    assert not drafts(fusion, facts(device="gpu", operations=MOVING, replica_count=2))


def test_turning_the_order_of_channels_is_named_with_what_it_takes() -> None:
    # 9 of the 18 ms of operations, which all are computing: 80 % of them go
    turning = replace(OPERATIONS, class_s={"conv": 0.009, "data_movement": 0.009}, layout_s=0.009)
    found = only(channels, facts(device="gpu", operations=turning))
    assert found.gain is not None
    assert found.gain.best == pytest.approx(20 / (20 - 0.8 * 9))
    assert "kernels that turn the order of channels" in found.evidence[0].text
    assert not drafts(channels, facts(operations=turning))  # a CPU
    assert not drafts(channels, facts(device="gpu", operations=replace(turning, layout_s=0.0005)))
