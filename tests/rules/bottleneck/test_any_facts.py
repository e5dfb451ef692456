"""Whatever was seen: one answer that adds up, in order; no gain beyond what there is to take."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from tests.rules.bottleneck.any_facts import any_facts

from tfdyno.core.doctor.finding import Evidence
from tfdyno.core.measure.bottleneck import SPLIT_PARTS
from tfdyno.rules.bottleneck import diagnose
from tfdyno.rules.bottleneck.rank import RULES
from tfdyno.rules.bottleneck.seen import look
from tfdyno.rules.bottleneck.split import watched_steps
from tfdyno.rules.bottleneck.tables import all_causes, cause, limits
from tfdyno.words.base.language import speaking

if TYPE_CHECKING:
    from tfdyno.core.measure.bottleneck import Bottleneck, StepDiagnosis
    from tfdyno.core.measure.step_facts import StepFacts

EVERYTHING = SPLIT_PARTS
WORKS_ON = {
    "input": ("input",),
    "host": ("host",),
    "host.epoch_ends": ("unseen",),
    "host.train_checkpoints": ("checkpoint",),
    "launch": ("launch", "host", "compute"),
    "compute": ("compute",),
    "memory_bandwidth": ("compute",),
    "communication": ("communication",),
    "callback": ("callback", "validation", "checkpoint"),
    "placement": ("copy",),
    "precision": ("compute",),
    "retrace": ("retrace",),
    # Python of which no profile tells, CPUs that are not given, and waiting for another worker
    # may be in all that the device seems to do.
    "host.run_eagerly": EVERYTHING,
    "host.numpy_in_step": EVERYTHING,
    "host.few_threads": ("compute",),
    "host.affinity": ("compute", "input"),
    "host.container_limit": EVERYTHING,
    "host.own_processes": ("compute", "input", "host", "launch"),
    "host.other_processes": ("compute", "input", "host", "launch"),
    "host.python_thread": ("host", "launch"),
    "communication.worker_skew": EVERYTHING,
    "compute.slowed_down": EVERYTHING,
    "placement.cpu_ops": EVERYTHING,
}
"""Parts of the split that a fix can take away, by class or cause."""


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(any_facts)
def test_there_is_one_answer_that_adds_up(facts: StepFacts) -> None:
    told = diagnose(facts)
    assert tuple(told.split_s) == SPLIT_PARTS
    assert min(told.split_s.values()) >= 0.0
    assert math.fsum(told.split_s.values()) == pytest.approx(told.step_s, rel=1e-9, abs=1e-12)
    if told.compute_s:
        assert sum(told.compute_s.values()) == pytest.approx(told.split_s["compute"], rel=1e-6)
    assert told.primary is told.findings[0]
    causes = [one.cause for one in told.findings if one.bottleneck_class != "callback"]
    assert len(causes) == len(set(causes)), causes  # of callbacks several may be slow
    for one in told.findings:
        assert one.summary
        assert one.evidence
        assert one.fix
        assert "{" not in one.summary + "".join(step.text for step in one.fix)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(any_facts)
def test_another_language_changes_the_words_alone(facts: StepFacts) -> None:
    english = diagnose(facts)
    with speaking("zh"):
        chinese = diagnose(facts)
    for one in chinese.findings:
        assert all(re.search("[\u4e00-\u9fff]", text) for text in
                   (one.summary, *(step.text for step in one.fix)))  # fmt: skip
    assert wordless(chinese) == wordless(english)


def wordless(told: StepDiagnosis) -> StepDiagnosis:
    found = tuple(
        replace(
            one,
            summary="",
            fix=tuple(replace(step, text="words") for step in one.fix),
            evidence=(Evidence(text="", source=""),) * len(one.evidence),
        )
        for one in told.findings
    )
    return replace(told, findings=found, primary=found[0], notes=("",) * len(told.notes))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(any_facts)
def test_no_change_is_asked_of_who_has_no_lever_of_ten_per_cent_and_no_defect(
    facts: StepFacts,
) -> None:
    told = diagnose(facts)
    leading = [one for one in told.findings if cause(one.cause).leads]
    gains = [one.expected_gain.best for one in leading if one.expected_gain]
    is_healthy = not told.primary.asks_for_change
    has_lever = max(gains, default=1.0) >= limits()["least_gain"]
    has_defect = any(cause(one.cause).defect for one in leading)
    assert is_healthy is not (has_lever or has_defect)
    assert not (is_healthy and len(told.findings) > 1)
    parts = told.split_s
    idle_s = sum(parts[one] for one in ("input", "host", "callback", "retrace", "unseen"))
    if is_healthy and facts.source != "record":
        is_well = told.primary.bottleneck_class == "healthy"
        assert is_well is (idle_s <= limits()["unexplained_ratio"] * told.step_s)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(any_facts)
def test_the_primary_cause_gains_most_unless_it_ends_the_run_or_grows(facts: StepFacts) -> None:
    told = diagnose(facts)
    gain, classes = told.primary.expected_gain, [one.bottleneck_class for one in told.findings]
    if "leak" in classes:
        assert told.primary.bottleneck_class in ("leak", "retrace")
    if told.primary.bottleneck_class in ("leak", "retrace", "placement") or not gain:
        return
    best = max((one.expected_gain.best for one in told.findings
                if one.expected_gain and cause(one.cause).leads), default=1.0)  # fmt: skip
    assert gain.best >= best / limits()["equal_gain"] ** 1.01


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(any_facts)
def test_no_gain_is_more_than_the_whole_part_gives(facts: StepFacts) -> None:
    told = diagnose(facts)
    for one in told.findings:
        gain = one.expected_gain
        if gain is None:
            continue
        assert 1.0 <= gain.low <= gain.best <= gain.high <= limits()["most_gain"] * (1 + 1e-9)
        whole_s, taken_s = part_of(facts, told, one)
        left_s = max(whole_s - taken_s, whole_s / limits()["most_gain"])
        assert gain.high <= whole_s / left_s * (1 + 1e-6), (one.cause, whole_s, taken_s)


def part_of(facts: StepFacts, told: StepDiagnosis, one: Bottleneck) -> tuple[float, float]:
    """The time that a fix can take away, and of what; both with stalls that no step has."""
    steps, name = facts.steps_per_epoch, one.bottleneck_class
    if name == "retrace":  # counted by itself
        return told.step_s, sum(each.seconds_s for each in facts.retraces) / watched_steps(facts)
    parts = WORKS_ON.get(one.cause) or WORKS_ON[name]
    taken_s, beside_s = sum(told.split_s[part] for part in parts), 0.0
    if name == "communication" and not taken_s:  # of what seems to be computing
        taken_s = max(0.5 * told.step_s, told.split_s["compute"])
    if name == "callback":
        beside_s = sum(each.per_step_s for each in facts.callbacks) + facts.callback_s
        beside_s += sum(each.per_epoch_s for each in facts.callbacks) / steps if steps else 0.0
    if one.cause == "input.slow_start" and facts.input and steps:
        beside_s = facts.input.start_s / steps
    return told.step_s + beside_s, taken_s + beside_s


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(any_facts)
def test_every_rule_says_causes_that_the_tables_have(facts: StepFacts) -> None:
    known = {one.id for one in all_causes()}
    seen = look(facts)
    assert {draft.cause for rule in RULES for draft in rule(seen)} <= known
