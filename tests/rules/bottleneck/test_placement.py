"""Variables and operations on another device."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.rules.bottleneck.steps import OPERATIONS, drafts, facts, only, primary

from tfdyno.rules.bottleneck.placement import copies, cpu_operations, variables_elsewhere

COPIES = replace(OPERATIONS, class_s={"gemm": 0.010, "data_movement": 0.008}, copy_s=0.008,
                 copied_bytes=2**20)  # fmt: skip


def test_variables_on_another_logical_cpu_lead() -> None:
    seen = facts(devices={"CPU:0": 1, "CPU:1": 64})
    found = primary(seen)
    assert found.cause == "placement.variables_elsewhere"
    assert found.evidence[0].text == "variables: 1 on CPU:0, 64 on CPU:1"
    assert "64 variables are on CPU:1" in found.summary


def test_copies_tell_what_it_would_gain() -> None:
    # 8 of 20 ms, 85 % of them go
    found = only(variables_elsewhere, facts(devices={"CPU:0": 1, "CPU:1": 64}, operations=COPIES))
    assert found.gain is not None
    assert found.gain.best == pytest.approx(20 / (20 - 0.85 * 8))


def test_variables_of_a_card_on_the_cpu_are_found() -> None:
    seen = facts(device="gpu", devices={"GPU:0": 2, "CPU:0": 6}, operations=None, execution="xla")
    assert primary(seen).cause == "placement.variables_elsewhere"


def test_a_few_counters_beside_a_card_are_usual() -> None:
    assert not drafts(variables_elsewhere, facts(device="gpu", devices={"GPU:0": 40, "CPU:0": 2}))


def test_replicas_have_variables_everywhere() -> None:
    assert not drafts(variables_elsewhere, facts(devices={"CPU:0": 8, "CPU:1": 8}, replica_count=2))
    assert not drafts(variables_elsewhere, facts(devices={"CPU:1": 8}))


def test_what_the_host_feeds_is_not_between_devices() -> None:
    fed = replace(COPIES, fed_s=0.006, fed_bytes=2**20 - 4096)
    found = only(copies, facts(device="gpu", operations=fed))
    assert found.evidence[0].text == "copies between devices: 2 ms of a step of 20 ms (10 %)"
    assert found.evidence[1].text == "4 KiB a step"
    assert not drafts(copies, facts(device="gpu", operations=replace(fed, fed_s=0.008)))


def test_copies_between_devices_are_a_part_of_the_step() -> None:
    found = only(copies, facts(operations=COPIES))
    assert found.evidence[0].text == "copies between devices: 8 ms of a step of 20 ms (40 %)"
    assert primary(facts(operations=COPIES)).cause == "placement.copies"
    assert not drafts(copies, facts())


def test_operations_on_the_cpu_beside_a_card_are_told_by_their_share() -> None:
    # 30 + 10 % of 20 ms, four fifths go
    host_only = ("Where (mask): 30% of the step", "Unique (ids): 10% of the step")
    seen = facts(device="gpu", operations=replace(OPERATIONS, host_only=host_only))
    found = only(cpu_operations, seen)
    assert found.gain is not None
    assert found.gain.best == pytest.approx(20 / (20 - 0.8 * 8))
    assert not drafts(cpu_operations, replace(seen, device="cpu"))
