"""From a growth per step to the hour at which memory is full."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tfdyno.core.measure.step_facts import GrowthFacts, HostFacts, MemoryCourse, StepFacts
from tfdyno.model.memory.outlook import outlooks

HOST = MemoryCourse(
    where="host", counted_by="allocator", steps=200, low_bytes_per_step=800.0,
    bytes_per_step=1000.0, high_bytes_per_step=2000.0, end_bytes=5_000_000, free_bytes=8_000_000,
)  # fmt: skip
PAGES = replace(HOST, counted_by="kernel", bytes_per_step=1200.0)
GROWS = GrowthFacts(
    where="host", bytes_per_step=1000.0, low_bytes_per_step=800.0, high_bytes_per_step=2000.0,
    kind="tensors", suspects=("list of 3 tensors held by train.py:3 (losses)",),
)  # fmt: skip
FACTS = StepFacts(
    title="train", device="cpu", source="run", steps_seen=400, steps_per_epoch=100, epochs=30,
    step_s=(0.5,) * 5, host=HostFacts(cpus=2, usable_cpus=2.0), memory=(HOST, PAGES),
    growth=(GROWS,),
)  # fmt: skip


def test_memory_is_full_after_what_is_free_over_what_a_step_takes() -> None:
    host = outlooks(FACTS, 0.5)[0]
    assert (host.where, host.grows, host.counted_by) == ("host", True, "allocator")
    assert host.full_in_steps
    assert host.full_in_s
    # By hand: 8 MB / 2000, 1000 and 800 B a step; half a second each.
    assert (host.full_in_steps.low, host.full_in_steps.best) == (4000.0, 8000.0)
    assert host.full_in_steps.high == 10_000.0
    assert host.full_in_s.best == 4000.0
    # 100 steps in each of 30 epochs at 1000 B.
    assert (host.training_steps, host.until_end_bytes) == (3000, 3_000_000.0)


def test_the_closest_account_is_told_in_whatever_order_they_come() -> None:
    for memory in ((HOST, PAGES), (PAGES, HOST)):
        (host,) = outlooks(replace(FACTS, memory=memory), 0.5)
        assert host.counted_by == "allocator"
    (pages,) = outlooks(replace(FACTS, memory=(PAGES,), growth=()), 0.5)
    assert (pages.counted_by, pages.grows, pages.full_in_s) == ("kernel", False, None)


def test_what_does_not_grow_is_never_full() -> None:
    flat = replace(HOST, low_bytes_per_step=-50.0, bytes_per_step=0.0, high_bytes_per_step=90.0)
    (host,) = outlooks(replace(FACTS, memory=(flat,), growth=()), 0.5)
    assert not host.grows
    assert host.bytes_per_step.high == 90.0
    assert (host.full_in_steps, host.full_in_s, host.until_end_bytes) == (None, None, None)


def test_growth_that_only_its_objects_tell_is_said_to_be_told_by_them() -> None:
    larger = replace(GROWS, bytes_per_step=4000.0, low_bytes_per_step=4000.0,
                     high_bytes_per_step=4000.0)  # fmt: skip
    (host,) = outlooks(replace(FACTS, growth=(larger,)), 0.5)
    assert (host.counted_by, host.bytes_per_step.best) == ("objects", 4000.0)


def test_growth_without_a_slope_has_no_hour() -> None:
    (host,) = outlooks(replace(FACTS, memory=(), epochs=0), 0.5)
    assert host.grows
    assert (host.steps, host.full_in_s, host.until_end_bytes) == (400, None, None)


def test_each_card_has_its_own_line_and_the_one_that_grows_the_reason() -> None:
    first = replace(HOST, where="GPU:0", low_bytes_per_step=0.0, bytes_per_step=0.0,
                    high_bytes_per_step=0.0)  # fmt: skip
    second = replace(HOST, where="GPU:1", free_bytes=4_000_000)
    grows = replace(GROWS, where="device")
    found = outlooks(replace(FACTS, memory=(first, second), growth=(grows,)), 0.5)
    assert [(one.where, one.grows, one.kind) for one in found] == [
        ("GPU:0", False, ""), ("GPU:1", True, "tensors"),
    ]  # fmt: skip
    assert found[1].full_in_steps
    assert found[1].full_in_steps.best == pytest.approx(4000.0)


def test_tensorflows_own_account_of_the_host_says_itself_whether_it_grows() -> None:
    tensors = replace(HOST, where="CPU:0", free_bytes=0)
    crumbs = replace(tensors, low_bytes_per_step=10.0)
    for course, grows in ((tensors, True), (crumbs, False)):
        found = outlooks(replace(FACTS, memory=(HOST, course)), 0.5)[1]
        assert (found.where, found.grows, found.full_in_s) == ("CPU:0", grows, None)


def test_every_card_that_grows_has_its_own_rate_and_its_own_hour() -> None:
    slow = replace(HOST, where="GPU:0", low_bytes_per_step=100.0, bytes_per_step=200.0,
                   high_bytes_per_step=400.0)  # fmt: skip
    fast = replace(HOST, where="GPU:1", free_bytes=4_000_000)
    rows = (replace(GROWS, where="device"), replace(GROWS, where="device", kind="unknown",
            bytes_per_step=200.0, low_bytes_per_step=100.0, high_bytes_per_step=400.0))  # fmt: skip
    for growth in (rows, rows[::-1]):
        first, second = outlooks(replace(FACTS, memory=(slow, fast), growth=growth), 0.5)
        assert (first.bytes_per_step.best, second.bytes_per_step.best) == (200.0, 1000.0)
        assert (first.grows, second.grows) == (True, True)
        # By hand: 8 MB at 200 B a step, 4 MB at 1000 B.
        assert first.full_in_steps
        assert second.full_in_steps
        assert (first.full_in_steps.best, second.full_in_steps.best) == (40_000.0, 4000.0)
        assert (first.until_end_bytes, second.until_end_bytes) == (600_000.0, 3_000_000.0)
