"""Memory that is nearly full is said, but does not hide what is slow."""

from __future__ import annotations

from tests.rules.bottleneck.steps import drafts, facts, only, pipeline, primary, stage, waiting

from tfdyno.rules.bottleneck.memory_pressure import near_limit

FULL = {"memory_used_bytes": 15 * 2**30, "memory_limit_bytes": 16 * 2**30}


def test_a_card_at_94_per_cent_is_nearly_full() -> None:
    seen = facts(device="gpu", operations=None, execution="xla", **FULL)
    found = only(near_limit, seen)
    assert found.settings == {"batch_size": "16", "accumulation": "2"}
    assert primary(seen).bottleneck_class == "memory_pressure"


def test_a_host_may_be_fuller_than_a_card() -> None:
    assert not drafts(near_limit, facts(**FULL))
    assert not drafts(near_limit, facts(device="gpu"))


def test_what_is_slow_goes_before_it() -> None:
    slow = pipeline(stage("map(load)", "map", 0.040))
    assert primary(waiting(slow, device="gpu", **FULL)).bottleneck_class == "input"


def test_replicas_are_not_told_to_accumulate() -> None:
    assert only(near_limit, facts(device="gpu", replica_count=2, **FULL)).settings == {}
    assert only(near_limit, facts(device="gpu", batch_size=1, **FULL)).settings == {}
