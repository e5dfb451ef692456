"""What a diagnosis found, in sentences made from its numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import get_args

import pytest
from tests.view.diagnoses import (
    CACHE,
    DIAGNOSIS,
    FACTS,
    HEALTHY,
    LEAK,
    PROOF,
    SERIAL,
    SLOWER,
    STAGED,
    TIMELINE,
    fixed,
    looked_again,
    only,
    told,
    whole,
)

from tfdyno.core.measure.bottleneck import SPLIT_PARTS
from tfdyno.core.measure.step_facts import OperationFacts, StepFacts
from tfdyno.view.diagnose import findings as diagnose_findings
from tfdyno.words.base.language import speaking


def test_the_split_is_one_sentence() -> None:
    assert diagnose_findings.answer(told()) == (
        "A step takes 418 ms: 61% waiting for data, 28% computing, 9% Python and starting the "
        "device and 2% gaps between operations."
    )
    assert set(diagnose_findings.PART_WORDS) == set(SPLIT_PARTS)


def test_after_a_fix_it_says_what_is_next() -> None:
    assert diagnose_findings.answer(looked_again()).endswith(
        "With what was kept it takes 173 ms. What is next then: nothing is known that gains 10 %."
    )


def test_the_numbers_of_the_answer() -> None:
    assert diagnose_findings.box(fixed()) == [
        ("Step", "418 ms", "half of them 415 ms to 421 ms"),
        ("Throughput", "612", "samples/s"),
        ("Expected of the change", "2.3–2.6x", "the step then takes 161–182 ms"),
        ("Proven", "2.41x", "2.35–2.47, 99 %; kept"),
    ]


def test_changes_that_are_not_the_first_are_proven_together() -> None:
    two = (replace(PROOF, cause="a", ratio=1.5), replace(PROOF, cause="b", ratio=2.0))
    told_so = replace(fixed(), proven=replace(fixed().proven, proofs=(SLOWER, *two)))
    assert diagnose_findings.box(told_so)[-1] == ("Proven of other changes", "3.00x", "a, b")


def test_a_healthy_step_of_an_epoch_has_no_gain() -> None:
    slower = replace(only(HEALTHY), step_s=0.5)
    assert diagnose_findings.box(told(slower, facts=replace(FACTS, batch_size=0))) == [
        ("Step", "500 ms", "with its share of the epoch"),
    ]


@pytest.mark.parametrize(
    ("split_s", "heading"),
    [
        (DIAGNOSIS.split_s, "61% of a step is waiting for data"),
        ({"compute": 0.4, "launch": 0.018}, "96% of a step is computing"),
        ({"compute": 0.418}, "100% of a step is computing"),
        ({"retrace": 0.209, "compute": 0.209}, "50% of a step is tracing functions again"),
        ({"unseen": 0.3, "validation": 0.118}, "What is in a step was not recorded"),
    ],
)
def test_the_largest_part_beside_computing_is_the_heading(
    split_s: dict[str, float], heading: str
) -> None:
    assert diagnose_findings.step(told(replace(DIAGNOSIS, split_s=split_s))).heading == heading


def test_a_step_after_a_fix_says_what_became_of_that_part() -> None:
    found = diagnose_findings.step(looked_again())
    assert found.heading == "61% of a step is waiting for data; 5% with what was kept"
    assert "the measurement in turns says" in found.lead
    assert "only its whole time was measured" in diagnose_findings.step(fixed()).lead


@pytest.mark.parametrize(
    ("compute_s", "heading"),
    [
        ({"conv": 0.1, "gemm": 0.017}, "Convolutions take 85% of computing"),
        ({"elementwise": 0.1, "gemm": 0.017}, "Element by element: 85% of computing"),
    ],
)
def test_the_class_that_leads_is_named(compute_s: dict[str, float], heading: str) -> None:
    found = diagnose_findings.computing(replace(DIAGNOSIS, compute_s=compute_s))
    assert found.heading == heading
    assert found.lead.startswith("117 ms of a step")


def test_long_steps_are_counted_and_named() -> None:
    found = diagnose_findings.course(TIMELINE)
    assert found.heading == "5 steps take much longer: tracing, validation and callbacks"
    assert found.lead.startswith("60 steps (after warm-up), 415 ms in the middle; step 41 took")
    one = replace(TIMELINE, stalls=TIMELINE.stalls[:1])
    assert diagnose_findings.course(one).heading == "One step takes much longer: validation"
    even = diagnose_findings.course(replace(TIMELINE, stalls=()))
    assert even.heading == "No step stands out"
    assert even.lead == "60 steps (after warm-up), 415 ms in the middle."


@pytest.mark.parametrize(
    ("held_s", "heading"),
    [
        (0.16, "The pipeline is slower than the step, and map(parse) is 94% of it"),
        (0.5, "The pipeline is faster than the step that it feeds"),
        (0.0, "map(parse) takes 94% of a batch"),
    ],
)
def test_whether_the_pipeline_keeps_up_is_the_heading(held_s: float, heading: str) -> None:
    found = diagnose_findings.stages(replace(STAGED, held_s=held_s), 256)
    assert found.heading == heading
    assert "it gives 1,000 samples/s" in found.lead
    assert ("by itself could take" in found.lead) == (held_s > 0)


def test_changes_and_proofs_are_counted() -> None:
    heading = diagnose_findings.findings
    assert heading(told()).heading == "2 things to change"
    assert "Nothing is proven before it was measured" in heading(told()).lead
    assert heading(fixed()).heading == "2 things to change; of 2 that were measured, 1 is kept"
    none = replace(fixed(), proven=replace(fixed().proven, proofs=fixed().proven.proofs[1:]))
    assert heading(none).heading.endswith("; the one that was measured is not kept")
    both = replace(fixed(), proven=replace(fixed().proven, proofs=(SLOWER, SLOWER)))
    assert heading(both).heading.endswith("; of 2 that were measured, none are kept")
    assert heading(told(only(LEAK))).heading == "One thing to change"
    assert heading(told(only(HEALTHY))).heading == "Nothing to change was found"
    lost = replace(HEALTHY, bottleneck_class="unknown", cause="unknown.not_explained")
    assert heading(told(only(lost))).heading == "What to change is not known"
    recorded = told(facts=replace(FACTS, source="record"))
    assert "Nothing can be proven without the script" in heading(recorded).lead


def test_a_line_of_the_table_has_expected_beside_proven() -> None:
    kept, not_kept = (diagnose_findings.row(one, fixed())
                      for one in fixed().proven.diagnosis.findings)  # fmt: skip
    assert (kept["expected"], kept["proven"], kept["range"]) == ("2.3–2.6x", "2.41x", "2.35–2.47")
    assert (kept["outcome"], kept["why"]) == ("kept", "")
    assert kept["change"] == "input.parallel_calls = -1, input.prefetch = -1"
    assert (not_kept["proven"], not_kept["outcome"]) == ("1.00x", "not kept")
    assert not_kept["why"].startswith("It is not faster")
    by_hand = diagnose_findings.row(LEAK, told(only(LEAK)))
    assert (by_hand["expected"], by_hand["proven"], by_hand["change"]) == ("–", "–", "by hand")
    assert diagnose_findings.row(HEALTHY, told(only(HEALTHY)))["change"] == ""
    assert diagnose_findings.row(CACHE, told())["range"] == "not measured"
    assert diagnose_findings.row(SERIAL, told())["place"] == "train.py:41"


def test_how_it_was_measured_names_all_that_was_looked_at() -> None:
    operations = OperationFacts(class_s={"conv": 0.1}, count_per_step=1234.4, busy_s=0.1)
    one = looked_again()
    rows = dict(diagnose_findings.measured(
        replace(one, facts=replace(one.facts, operations=operations))))  # fmt: skip
    assert rows["Steps"].startswith("60 steps of the script's own fit")
    assert rows["The step alone"].endswith("one batch that is held: 160 ms")
    assert rows["The pipeline alone"].startswith("2 batches, one after the other")
    assert rows["Operations"] == "1,234 a step, by a profile"
    assert rows["Proof"].startswith("up to 5 fresh processes a side in turns")
    assert "Look after" in rows
    assert "Proof" not in dict(diagnose_findings.measured(whole()))


def test_every_number_has_a_chinese_name() -> None:
    operations = OperationFacts(class_s={"conv": 0.1}, count_per_step=1234.4, busy_s=0.1)
    one = looked_again()
    one = replace(one, facts=replace(one.facts, operations=operations))
    with speaking("zh"):
        names = [name for name, _ in diagnose_findings.measured(one)]
        names += [name for name, _, _ in diagnose_findings.box(one)]
    assert [name for name in names if not re.fullmatch("[\u4e00-\u9fff]+", name)] == []


@pytest.mark.parametrize("source", get_args(StepFacts.__annotations__["source"]) or
                         ("run", "loop", "profile", "record"))  # fmt: skip
def test_every_kind_of_steps_has_words(source: str) -> None:
    facts = replace(FACTS, source=source)  # type: ignore[arg-type]
    assert diagnose_findings.measured(told(facts=facts))[0][1].startswith("60 steps ")
