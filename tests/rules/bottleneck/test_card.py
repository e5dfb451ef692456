"""What a driver tells of its card: idle, slowed down, shared with others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.rules.bottleneck.steps import HOST, answer, drafts, facts, only, primary

from tfdyno.core.measure.step_facts import CallbackFacts, CardFacts, StepFacts
from tfdyno.rules.bottleneck.card import idle, memory_errors, shared, slowed_down

CARD = CardFacts(name="NVIDIA L4", busy_ratio=0.95, power_w=70.0, power_limit_w=72.0,
                 clock_hz=1.5e9, clock_limit_hz=2.0e9)  # fmt: skip


def record(*cards: CardFacts, **changed: Any) -> StepFacts:
    """Steps of 20 ms on a card, of which nothing but these was recorded."""
    given = {"device": "gpu", "source": "record", "held_s": (), "input": None, "operations": None,
             "cards": cards}  # fmt: skip
    return facts(**(given | changed))


def test_a_card_that_waits_leads_and_gains_what_nobody_knows() -> None:
    told = primary(record(replace(CARD, busy_ratio=0.4)))
    assert (told.cause, told.bottleneck_class) == ("host.idle_card", "host")
    assert told.summary == "The card does nothing for 60 % of the time: it waits for the host."
    assert told.expected_gain is None
    assert told.settings == {}


def test_where_all_cpus_are_busy_they_are_what_it_waits_for() -> None:
    full = replace(HOST, cpu_ratio=0.8, other_cpu_ratio=0.15)
    waits = record(replace(CARD, busy_ratio=0.4), host=full)
    assert "All CPUs are busy" in primary(waits).fix[0].text
    assert "All CPUs" not in primary(record(replace(CARD, busy_ratio=0.4))).fix[0].text


@pytest.mark.parametrize(
    "seen",
    [
        record(CARD),
        record(replace(CARD, busy_ratio=0.0)),  # not known
        record(replace(CARD, busy_ratio=0.4), source="run"),  # there the steps tell more
        record(),
    ],
)
def test_a_busy_card_and_one_that_nobody_watched_are_not_idle(seen: StepFacts) -> None:
    assert drafts(idle, seen) == {}


def test_a_lowered_clock_costs_what_the_clock_lacks_at_most() -> None:
    hot = replace(CARD, lowered_ratio=0.5, reasons=("software power cap",))
    told = only(slowed_down, record(hot))
    # a fourth of the clock is missing for 95 % of the step: 20 / (20 - 0.2375 * 20) at most
    assert told.gain
    assert told.gain.low == 1.0
    assert told.gain.high == pytest.approx(1 / (1 - 0.2375))
    seen = " ".join(one.text for one in told.evidence)
    assert "50 % of the steady time: software power cap" in seen
    assert "1,500 MHz of 2,000" in seen
    assert "70 of 72 W" in seen


@pytest.mark.parametrize(
    ("reason", "advice"),
    [("software power cap", "Raise the power limit"), ("hardware thermal slowdown", "Cool it")],
)
def test_heat_and_power_have_different_fixes(reason: str, advice: str) -> None:
    hot = replace(CARD, clock_hz=1.0e9, lowered_ratio=1.0, reasons=(reason,))
    told = primary(record(hot))
    assert told.cause == "compute.slowed_down"
    assert [one.text.startswith(advice) for one in told.fix] == [True]


def test_a_clock_that_is_lowered_now_and_then_is_left_alone() -> None:
    assert drafts(slowed_down, record(replace(CARD, lowered_ratio=0.02, reasons=("x",)))) == {}


def test_others_on_the_card_are_told_and_lead_never() -> None:
    told = answer(record(replace(CARD, other_memory_bytes=3 << 30)))
    assert told.primary.cause == "healthy.not_seen"
    assert any("3 GiB of the card" in note for note in told.notes)
    assert drafts(shared, record(replace(CARD, other_memory_bytes=100 << 20))) == {}


def test_a_record_without_anything_to_say_is_not_called_fast() -> None:
    told = answer(record(CARD))
    assert told.primary.cause == "healthy.not_seen"
    assert "was not recorded" in told.primary.summary
    assert told.split_s["unseen"] == pytest.approx(0.020)
    assert told.split_s["compute"] == 0.0
    assert told.notes == ()


def test_what_a_record_knows_of_its_epochs_is_a_finding_as_ever() -> None:
    # 100 steps of 20 ms, and 2 s of validation after them: half of the time
    told = answer(record(CARD, callbacks=(CallbackFacts(name="validation", per_epoch_s=2.0),)))
    assert told.primary.cause == "callback.validation_each_epoch"
    assert told.split_s["validation"] == pytest.approx(told.step_s / 2)


def test_errors_of_its_memory_are_told_and_never_lead() -> None:
    failing = answer(record(replace(CARD, corrected_errors=1200)))
    assert failing.primary.cause == "healthy.not_seen"
    assert any("1,200 errors corrected while steps ran" in note for note in failing.notes)
    lost = only(memory_errors, record(CARD, replace(CARD, uncorrected_errors=3)))
    assert [one.text.split()[0] for one in lost.evidence] == ["3"]
    assert drafts(memory_errors, record(CARD)) == {}
