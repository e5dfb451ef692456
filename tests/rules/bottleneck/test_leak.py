"""Growth beyond its limit leads, and is named by what grows."""

from __future__ import annotations

from typing import Any

import pytest
from tests.rules.bottleneck.steps import (
    answer,
    drafts,
    facts,
    only,
    pipeline,
    primary,
    stage,
    waiting,
)

from tfdyno.core.step_facts import GrowthFacts, RetraceFacts
from tfdyno.rules.bottleneck.leak import growing

LIST = ("list of 1,204 tensors held by train.py:31 (losses)",)


def growth(low: float, kind: str = "tensors", suspects: tuple[str, ...] = LIST,
           where: str = "host") -> GrowthFacts:  # fmt: skip
    made: dict[str, Any] = {"where": where, "kind": kind, "suspects": suspects}
    return GrowthFacts(bytes_per_step=2 * low, low_bytes_per_step=low, **made)


@pytest.mark.parametrize("kind", ["tensors", "functions", "logs", "iterators", "unknown"])
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
