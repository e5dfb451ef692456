"""The answer of a look at memory alone: what makes it grow, or that nothing does."""

from __future__ import annotations

from typing import Any

import pytest
from tests.rules.bottleneck.steps import facts

from tfdyno.core.measure.step_facts import FitsFacts, GrowthFacts, MemoryCourse, RetraceFacts
from tfdyno.rules.bottleneck import diagnose, diagnose_growth

LIST = ("list of 1,204 tensors held by train.py:31 (losses)",)


def course(high: float, counted_by: str = "allocator", where: str = "host") -> MemoryCourse:
    made: dict[str, Any] = {"where": where, "counted_by": counted_by}
    return MemoryCourse(
        low_bytes_per_step=-200.0, bytes_per_step=0.0, high_bytes_per_step=high, steps=180,
        end_bytes=10**9, **made,
    )  # fmt: skip


def growth(kind: str = "tensors", suspects: tuple[str, ...] = LIST) -> GrowthFacts:
    made: dict[str, Any] = {"kind": kind, "suspects": suspects}
    return GrowthFacts(where="host", bytes_per_step=2e5, low_bytes_per_step=1e5, **made)


def test_where_nothing_grows_the_closest_bound_is_told() -> None:
    seen = facts(memory=(course(3000.0, "kernel"), course(1024.0)), held_s=())
    found = diagnose_growth(seen)
    assert (found.primary.bottleneck_class, found.primary.cause) == ("healthy", "healthy.no_growth")
    assert found.primary.summary == (
        "Memory does not grow: no more than 1 KiB a step, seen in 180 steps."
    )
    assert [one.source for one in found.primary.evidence] == [
        "memory of the process", "what the allocators have in use",
    ]  # fmt: skip
    assert found.split_s == {}


FITS = FitsFacts(
    fits=9, counted_by="allocator", begin_bytes=(10**8,) * 9, models=(2,) * 9,
    low_bytes_per_fit=0.0, bytes_per_fit=1024.0, high_bytes_per_fit=2048.0, is_told=True,
)  # fmt: skip


def test_no_growth_is_said_of_fits_where_several_were_looked_at() -> None:
    found = diagnose_growth(facts(memory=(course(1024.0),), fits=FITS, held_s=()))
    assert found.primary.summary == (
        "Memory does not grow: no more than 1 KiB a step, seen in 180 steps, and 2 KiB a fit, in 9 "
        "fits."
    )
    assert found.primary.evidence[-1].text == "between 0 B and 2 KiB a fit, in 9 fits"


def test_growth_from_fit_to_fit_alone_is_a_leak() -> None:
    fits = FitsFacts(
        fits=9, counted_by="kernel", begin_bytes=(10**8,) * 9, models=(2,) * 9,
        low_bytes_per_fit=4e6, bytes_per_fit=5e6, high_bytes_per_fit=6e6, is_told=True,
    )  # fmt: skip
    found = diagnose_growth(facts(memory=(course(1024.0),), fits=fits, held_s=()))
    assert [one.cause for one in found.findings] == ["leak.each_fit"]
    assert found.primary.severity == "error"


def test_a_few_steps_are_no_proof_of_health() -> None:
    found = diagnose_growth(facts(steps_seen=9, held_s=()))
    assert found.primary.cause == "healthy.few_steps"
    assert found.primary.summary == "9 steps are too few to tell whether memory grows."


@pytest.mark.parametrize("kind", ["tensors", "functions", "logs", "iterators", "objects"])
def test_each_kind_of_growth_has_its_cause(kind: str) -> None:
    found = diagnose_growth(facts(growth=(growth(kind),), memory=(course(1e5),)))
    assert (found.primary.cause, found.primary.place) == (f"leak.{kind}", "train.py:31")
    assert found.primary.severity == "error"


def test_a_slow_step_is_no_matter_of_memory() -> None:
    slow = facts(step_s=(0.1,) * 40, held_s=(0.02,) * 40, python_s=0.07, memory=(course(0.0),))
    assert diagnose(slow).primary.bottleneck_class != "healthy"
    assert [one.cause for one in diagnose_growth(slow).findings] == ["healthy.no_growth"]


def traced(differs: str) -> RetraceFacts:
    return RetraceFacts(function="f", traces=20, calls=40, seconds_s=0.4, differs=differs,
                        place="train.py:12")  # fmt: skip


def test_tracing_that_keeps_graphs_is_the_cause_of_their_growth() -> None:
    shapes = traced("argument x: shape (32,) -> (31,)")
    seen = facts(growth=(growth("functions", ("90 live tf.functions",)),), retraces=(shapes,))
    assert [one.cause for one in diagnose_growth(seen).findings] == ["retrace.shape"]


def test_tracing_beside_a_list_of_tensors_is_another_matter() -> None:
    seen = facts(growth=(growth(),), retraces=(traced("argument x: shape (32,) -> (31,)"),))
    assert [one.cause for one in diagnose_growth(seen).findings] == ["leak.tensors"]


def test_functions_that_nobody_is_seen_to_hold_have_the_line_that_makes_them() -> None:
    made = traced("a new tf.function for each call")
    held = growth("functions", ("90 live tf.functions, 1.0 more with each step",))
    found = diagnose_growth(facts(growth=(held,), retraces=(made,)))
    assert (found.primary.cause, found.primary.place) == ("leak.functions", "train.py:12")
