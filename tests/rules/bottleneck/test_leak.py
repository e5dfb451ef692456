"""Growth beyond its limit leads, and is named by what grows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.rules.bottleneck.steps import (
    HOST,
    answer,
    drafts,
    facts,
    only,
    pipeline,
    primary,
    stage,
    waiting,
)

from tfdyno.core.measure.step_facts import FitsFacts, GrowthFacts, MemoryCourse, RetraceFacts
from tfdyno.rules.bottleneck.leak import fits_growing, growing, leaking, near_limit

LIST = ("list of 1,204 tensors held by train.py:31 (losses)",)


def growth(low: float, kind: str = "tensors", suspects: tuple[str, ...] = LIST,
           where: str = "host") -> GrowthFacts:  # fmt: skip
    made: dict[str, Any] = {"where": where, "kind": kind, "suspects": suspects}
    return GrowthFacts(bytes_per_step=2 * low, low_bytes_per_step=low, **made)


@pytest.mark.parametrize(
    "kind", ["tensors", "functions", "logs", "iterators", "objects", "unknown"]
)
def test_each_kind_of_growth_has_its_cause(kind: str) -> None:
    found = primary(facts(growth=(growth(100_000, kind),)))
    assert found.cause == f"leak.{kind}"
    assert found.place == "train.py:31"
    assert found.expected_gain is None


def test_the_evidence_names_the_limit() -> None:
    found = only(growing, facts(growth=(growth(1024),)))
    text = "grows by 2 KiB a step, at least 1 KiB (up to 64 B is left alone)"
    assert found.evidence[0].text == text


def test_a_process_may_grow_a_little_where_nothing_is_found() -> None:
    assert not drafts(growing, facts(growth=(growth(20_000, "unknown", ()),)))
    assert drafts(growing, facts(growth=(growth(40_000, "unknown", ()),)))
    assert drafts(growing, facts(growth=(growth(5_000, "unknown", (), "device"),)))
    assert not drafts(growing, facts(growth=(growth(-5.0),)))


def test_a_process_that_grows_less_and_less_leaks_nothing_that_is_known() -> None:
    uneven = GrowthFacts(where="host", kind="unknown", bytes_per_step=400_000.0,
                         low_bytes_per_step=72_000.0)  # fmt: skip
    assert not drafts(growing, facts(growth=(uneven,)))
    assert drafts(growing, facts(growth=(replace(uneven, low_bytes_per_step=200_000.0),)))
    named = replace(uneven, kind="tensors", suspects=LIST)
    assert drafts(growing, facts(growth=(named,)))
    assert leaking(facts(growth=(uneven, named))) == (named,)


def test_the_evidence_says_when_memory_is_full() -> None:
    seen = facts(growth=(growth(2**20),), host=replace(HOST, memory_free_bytes=8 * 2**30))
    found = only(growing, seen)
    # By hand: 8 GiB at 2 MiB a step are 4096 steps of 20 ms: 81.9 s; at 1 MiB 164 s, 2.73 min.
    told = "the 8 GiB that are free are full after 81.9 s (81.9 s to 2.73 min)"
    assert found.evidence[1].text == told
    fast = replace(growth(2**20), high_bytes_per_step=4.0 * 2**20)
    found = only(growing, replace(seen, growth=(fast,)))
    assert found.evidence[1].text.endswith("after 81.9 s (41 s to 2.73 min)")
    known = replace(growth(2**20), bytes_per_step=2.0**20, high_bytes_per_step=2.0**20)
    found = only(growing, replace(seen, growth=(known,)))
    assert found.evidence[1].text.endswith("are full after 2.73 min")
    device = growth(2**20, where="device")
    card = facts(growth=(device,), device="gpu", memory_used_bytes=2**30,
                 memory_limit_bytes=2**30 + 720_000 * 2**21)  # fmt: skip
    # 720,000 steps at 2 MiB a step: 14,400 s.
    assert only(growing, card).evidence[1].text.endswith("are full after 4 h (4 h to 8 h)")


def test_what_an_allocator_counts_may_grow_less_unseen() -> None:
    counted = MemoryCourse(
        where="host", counted_by="allocator", steps=200, low_bytes_per_step=0.0,
        bytes_per_step=0.0, high_bytes_per_step=0.0, end_bytes=1,
    )  # fmt: skip
    unknown = growth(5_000, "unknown", ())
    assert not drafts(growing, facts(growth=(unknown,)))
    assert drafts(growing, facts(growth=(unknown,), memory=(counted,)))
    assert not drafts(growing, facts(growth=(growth(4_000, "unknown", ()),), memory=(counted,)))


def test_a_leak_leads_before_a_slow_input() -> None:
    slow = pipeline(stage("map(load)", "map", 0.040))
    told = answer(waiting(slow, growth=(growth(100_000),)))
    assert [one.bottleneck_class for one in told.findings[:2]] == ["leak", "input"]


def test_the_process_as_a_whole_is_not_told_beside_what_is_known() -> None:
    seen = facts(growth=(growth(100_000), growth(100_000, "unknown", ())))
    assert [one.cause for one in answer(seen).findings] == ["leak.tensors"]


def test_graphs_that_retracing_keeps_are_its_symptom() -> None:
    traced = RetraceFacts(function="f", traces=20, calls=40, seconds_s=0.4,
                          differs="argument x: shape (32,) -> (31,)")  # fmt: skip
    seen = facts(retraces=(traced,), growth=(growth(100_000, "functions"),))
    assert [one.cause for one in answer(seen).findings] == ["retrace.shape"]


def test_new_functions_that_something_keeps_are_a_leak() -> None:
    traced = RetraceFacts(function="f", traces=20, calls=40, seconds_s=0.4,
                          differs="a new tf.function for each call")  # fmt: skip
    seen = facts(retraces=(traced,), growth=(growth(100_000, "functions"),))
    assert [one.cause for one in answer(seen).findings] == ["leak.functions"]
    dropped = facts(retraces=(traced,), growth=(growth(100_000, "functions", ()),))
    assert [one.cause for one in answer(dropped).findings] == ["retrace.new_function"]


MIB = 2**20
FITS = FitsFacts(
    fits=9, counted_by="allocator", begin_bytes=tuple(8 * MIB * at for at in range(9)),
    models=(2,) * 9, low_bytes_per_fit=7.0 * MIB, bytes_per_fit=8.0 * MIB,
    high_bytes_per_fit=9.0 * MIB, is_told=True, place="search.py:12", free_bytes=16 * 2**30,
)  # fmt: skip


def test_what_stays_from_fit_to_fit_is_told_with_its_range_and_the_fits_that_are_left() -> None:
    # 16 GiB / 8 MiB = 2048
    found = primary(facts(fits=FITS))
    assert (found.cause, found.place) == ("leak.each_fit", "search.py:12")
    assert found.expected_gain is None
    assert [one.text for one in found.evidence] == [
        "grows by 8 MiB from one fit to the next (7 MiB to 9 MiB), in 9 fits",
        "the 16 GiB that are free are full after 2,000 fits",
        "2 Keras models were alive at first, 2 at the end",
    ]


def test_models_that_become_more_with_the_fits_are_kept() -> None:
    kept = replace(FITS, models=tuple(range(2, 11)))
    assert only(fits_growing, facts(fits=kept)).cause == "leak.kept_models"


def test_little_or_unsure_growth_from_fit_to_fit_is_left_alone() -> None:
    assert not drafts(fits_growing, facts(fits=replace(FITS, low_bytes_per_fit=200_000.0)))
    assert not drafts(fits_growing, facts(fits=replace(FITS, is_told=False)))
    assert not drafts(fits_growing, facts())


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
