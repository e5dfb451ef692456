"""Bits that the model does not need."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.rules.bottleneck.steps import OPERATIONS, drafts, facts, only, primary

from tfdyno.rules.bottleneck.compute import float64, half_on_cpu


def test_variables_of_64_bits_cost_nearly_half_of_computing() -> None:
    # 18 of 20 ms, 45 % of them go
    seen = facts(float64=("dense/kernel", "input x"))
    found = only(float64, seen)
    assert found.gain is not None
    assert found.gain.best == pytest.approx(20 / (20 - 0.45 * 18))
    assert found.settings == {"precision": "float32"}
    assert primary(seen).cause == "precision.float64"


def test_a_profile_tells_how_much_runs_in_64_bits() -> None:
    # 6 of 20 ms
    seen = facts(operations=replace(OPERATIONS, float64_s=0.006))
    found = only(float64, seen)
    assert found.gain is not None
    assert found.gain.best == pytest.approx(20 / (20 - 0.45 * 6))
    assert found.settings == {}


def test_inputs_of_64_bits_alone_are_usual() -> None:
    assert not drafts(float64, facts(float64=("input x", "input y")))


def test_a_card_is_much_slower_in_64_bits() -> None:
    seen = facts(device="gpu", float64=("dense/kernel",))
    assert only(float64, seen).cause == "precision.float64_on_card"


@pytest.mark.parametrize("policy", ["mixed_float16", "float16", "mixed_bfloat16"])
def test_16_bits_on_a_cpu_are_a_lever(policy: str) -> None:
    # 18 of 20 ms, three tenths of them go
    found = primary(facts(precision=policy))
    assert found.cause == "precision.half_on_cpu"
    assert found.expected_gain is not None
    assert found.expected_gain.best == pytest.approx(20 / (20 - 0.3 * 18))


def test_32_bits_on_a_cpu_and_16_on_a_card_are_fine() -> None:
    assert not drafts(half_on_cpu, facts())
    assert not drafts(half_on_cpu, facts(device="gpu", precision="mixed_float16"))
