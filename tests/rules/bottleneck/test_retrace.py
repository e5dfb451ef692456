"""Tracing again leads beyond its limits, with what differed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.rules.bottleneck.steps import answer, drafts, facts, only, primary

from tfdyno.core.measure.step_facts import CallbackFacts, RetraceFacts
from tfdyno.rules.bottleneck.retrace import traced_again


def traced(
    differs: str = "", traces: int = 10, calls: int = 40, seconds_s: float = 0.4
) -> RetraceFacts:
    return RetraceFacts(function="step", place="train.py:9", traces=traces, calls=calls,
                        seconds_s=seconds_s, differs=differs)  # fmt: skip


@pytest.mark.parametrize(
    ("differs", "cause"),
    [
        ("argument x: shape (32, 8) -> (31, 8)", "shape"),
        ("argument x: shape (32, 8) -> (31, 8), float32 -> float64", "shape"),
        ("argument x: float32 -> float64", "dtype"),
        ("argument step: 3 -> 4", "python_value"),
        ("argument model: another Dense", "python_value"),
        ("a new tf.function for each call", "new_function"),
        ("a new dataset for each call", "new_function"),
        ("no argument: a variable, a device or a setting that it uses", "unknown"),
        ("", "unknown"),
    ],
)
def test_what_differed_names_the_cause(differs: str, cause: str) -> None:
    found = primary(facts(retraces=(traced(differs),)))
    assert found.cause == f"retrace.{cause}"
    assert found.place == "train.py:9"


def test_tracing_now_and_then_comes_on_top_of_the_typical_step() -> None:
    # 0.4 s in 40 steps: 10 ms beside a step of 20; 95 % of them go
    found = only(traced_again, facts(retraces=(traced("argument x: shape (1,) -> (2,)"),)))
    assert found.gain is not None
    assert found.gain.best == pytest.approx(30 / (30 - 9.5))


def test_tracing_in_each_step_is_part_of_it() -> None:
    # 10 of 30 ms
    often = traced("argument step: 3 -> 4", traces=39)
    seen = facts(step_s=(0.030,) * 40, retraces=(often,), input=None)
    found = only(traced_again, seen)
    assert found.gain is not None
    assert found.gain.best == pytest.approx(30 / (30 - 9.5))


def test_tracing_is_spread_over_the_steps_in_which_it_was_timed() -> None:
    # 39 of 10 ms in 40 steps after 60 of warm-up, which nobody watched
    often = traced("argument step: 3 -> 4", traces=39)
    seen = facts(step_s=(0.030,) * 40, retraces=(often,), steps_seen=100, steps_watched=40)
    assert answer(seen).split_s["retrace"] == pytest.approx(0.010)
    found = only(traced_again, seen)
    assert found.gain is not None
    assert found.gain.best == pytest.approx(30 / (30 - 9.5))


def test_a_dataset_that_is_made_anew_is_told_as_such() -> None:
    found = primary(facts(retraces=(traced("a new dataset for each call"),)))
    assert found.summary.startswith("A dataset is made anew for each call, and step in it")
    assert "predict_on_batch" in found.fix[1].text
    found = primary(facts(retraces=(traced("a new tf.function for each call"),)))
    assert found.summary == "step is made anew for each call, and traced each time."
    assert len(found.fix) == 1


def test_the_last_batch_of_an_epoch_may_be_traced() -> None:
    assert not drafts(traced_again, facts(retraces=(traced(traces=1, calls=40),)))
    assert not drafts(traced_again, facts(retraces=(traced(traces=3, calls=9, seconds_s=9.0),)))


def test_functions_traced_for_one_reason_are_one_finding() -> None:
    # 0.4 and 0.2 s in 40 steps: 15 ms beside a step of 20; 95 % of them go
    new = "a new tf.function for each call"
    found = only(traced_again, facts(retraces=(traced(new, seconds_s=0.2), traced(new))))
    assert found.gain is not None
    assert found.gain.best == pytest.approx(35 / (35 - 14.25))
    assert any(one.text == "1 more functions like it, traced 10 times" for one in found.evidence)


def test_what_a_callback_traces_is_the_callback_s() -> None:
    within = replace(traced("a new dataset for each call"), callback="Journal")
    journal = CallbackFacts(name="Journal", per_step_s=0.015)
    found = primary(facts(retraces=(within,), callbacks=(journal,), callback_s=0.015))
    assert found.cause == "callback.slow_callback"
    assert primary(facts(retraces=(within,))).cause == "retrace.new_function"


def test_tracing_that_costs_next_to_nothing_does_not_lead() -> None:
    little = traced("argument step: 3 -> 4", seconds_s=0.02)
    slow = CallbackFacts(name="Journal", per_step_s=0.015)
    seen = facts(retraces=(little,), callbacks=(slow,), callback_s=0.015)
    assert primary(seen).cause == "callback.slow_callback"


def test_rare_and_cheap_tracing_is_left_alone() -> None:
    assert not drafts(traced_again, facts(retraces=(traced(traces=4, calls=400, seconds_s=0.02),)))
    assert drafts(traced_again, facts(retraces=(traced(traces=4, calls=400, seconds_s=0.2),)))


def test_a_few_calls_that_were_all_traced_are_not_left_alone() -> None:
    """A loop on an H200 beside others: ten steps in the time given, of which four were watched."""
    each = traced("argument words: shape (16, 223) -> (16, 231)", traces=3, calls=4, seconds_s=2.7)
    seen = facts(retraces=(each,), steps_watched=5, step_s=(0.84, 0.46, 0.46, 0.98, 1.05))
    found = primary(seen)
    assert found.cause == "retrace.shape"
    assert (
        found.evidence[0].text == "step was traced 3 times after the first in 4 calls (each anew)"
    )
    one_epoch = traced(traces=1, calls=2, seconds_s=2.7)  # a first batch, and a smaller last one
    assert not drafts(traced_again, facts(retraces=(one_epoch,), steps_watched=2))


def test_a_step_that_mostly_computes_nothing_is_never_called_healthy() -> None:
    lost = traced(traces=3, calls=9, seconds_s=2.7)
    told = answer(facts(retraces=(lost,), steps_watched=5, step_s=(0.84,) * 5, held_s=(0.006,) * 5,
                        operations=None, input=None, source="loop"))  # fmt: skip
    assert told.primary.cause == "unknown.not_explained"
    assert (told.primary.severity, told.primary.asks_for_change) == ("warning", False)
    assert "nothing" in told.primary.summary


def test_the_evidence_names_the_limit() -> None:
    found = only(traced_again, facts(retraces=(traced(),)))
    text = "step was traced 10 times after the first in 40 calls (up to 3 are left alone)"
    assert found.evidence[0].text == text


def test_tracing_now_and_then_is_spread_over_the_steps_of_the_split() -> None:
    again, once = traced("argument x: shape (1,) -> (2,)"), traced(traces=1, seconds_s=9.0)
    told = answer(facts(retraces=(again, once)))
    assert told.split_s["retrace"] == pytest.approx(0.010)
    assert sum(told.split_s.values()) == pytest.approx(told.step_s) == pytest.approx(0.030)


def test_a_new_iterator_over_the_replicas_in_each_epoch_is_not_the_users_function() -> None:
    again = traced("a new iterator over several devices for each call", calls=11)
    told = answer(facts(retraces=(again,))).primary
    assert told.cause == "retrace.new_iterator"
    assert "steps_per_epoch" in told.fix[0].text
    assert told.expected_gain
    assert told.expected_gain.best == pytest.approx(30 / 21)


def test_on_jax_it_is_compiled() -> None:
    one = traced("argument x: shape (32, 8) -> (31, 8)")
    found = primary(facts(backend="jax", execution="xla", retraces=(one,)))
    assert found.cause == "retrace.shape"
    assert found.summary.startswith("step is compiled for each new shape: argument x")
    assert found.evidence[0].text.startswith("step was compiled 10 times after the first")
    assert "tf." not in "".join(step.text for step in found.fix)
