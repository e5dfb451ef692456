from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.model.time.test_estimate import estimate as estimated
from tests.model.time.test_explanation import MANY

from tfdyno.view.choose.explanation_text import explanation_text, explanations_text

if TYPE_CHECKING:
    from typing import Any

    from tfdyno.core.choose.estimate import Estimate

_UNITS_S = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}
_TIME = re.compile(r"([\d.,]+) (s|ms|µs)$")


def one(**named: Any) -> Estimate:
    return estimated(explained=True, made=MANY, **named)


def text(found: Estimate, width: int = 400) -> str:
    return explanation_text(found, "NVIDIA A100", width=width)


def seconds(told: str) -> float:
    """The last time of a line, in seconds."""
    match = _TIME.search(told.strip())
    assert match, told
    return float(match[1].replace(",", "")) * _UNITS_S[match[2]]


def test_the_step_is_told_first_and_then_taken_apart() -> None:
    found = one()
    lines = text(found).splitlines()
    assert re.fullmatch(r"Why [\d.]+ ms on A100", lines[0])
    step = next(line for line in lines if line.startswith("  step "))
    assert seconds(step) == pytest.approx(found.step_s.best, rel=5e-3)  # three digits
    titles = ["The rest", "The card", "The constants", "The range", "Sources"]
    assert [line for line in lines if line in titles] == titles


def test_the_printed_numbers_work_out_to_the_printed_times() -> None:
    """Every formula is calculated again from its text, with the three digits that it shows."""
    formulas = re.findall(r"^ +(?:arithmetic|memory traffic) +(.+) = (.+)$", text(one()), re.M)
    assert len(formulas) > 40
    prefixes = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "": 1.0}
    for formula, time in formulas:
        amount, _, rate = formula.partition(" / ")
        number = {True: 1.0, False: 1.0}
        for below, part in ((False, amount), (True, rate.strip("()"))):
            for factor in part.split(" × "):
                match = re.match(r"([\d.,]+) ?([kMGT]?)(?:FLOP|B)?\b", factor)
                assert match, formula
                number[below] *= float(match[1].replace(",", "")) * prefixes[match[2]]
        assert number[False] / number[True] == pytest.approx(seconds(time), rel=0.025)


def test_the_last_table_closes_the_sum() -> None:
    found = one(replicas=4, gpu="rtx-3090")
    rest = text(found).partition("The rest")[2].partition("The card")[0]
    rows = re.findall(r"^  (.+?)  +(?:[\d,]+  +)?([\d.]+ (?:ms|µs|s)) +[\d.]+%$", rest, re.M)
    times = {name: seconds(told) for name, told in rows}
    together = times.pop("together")
    assert together == pytest.approx(found.step_s.best, rel=5e-3)
    assert sum(times.values()) == pytest.approx(together, rel=0.02)
    assert "exchange of gradients" in times


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    shown = text(one(replicas=2, execution="graph"), width)
    free = [line for line in shown.splitlines() if " " in line.strip()]
    assert max(map(len, free)) <= width


def test_every_note_has_a_source_and_every_source_a_note() -> None:
    shown, _, sources = text(one(gpu="t4", replicas=2)).partition("\nSources\n")
    listed = re.findall(r"^  \[(\d+)\]", sources, re.M)
    assert listed == [str(number) for number in range(1, len(listed) + 1)]
    assert set(re.findall(r"\[(\d+)\]", shown)) <= set(listed)


def test_a_constant_at_its_bound_is_called_so() -> None:
    found = one()
    assert found.explanation
    first, *rest = (replace(each, identified=True) for each in found.explanation.constants)
    constants = (replace(first, identified=False), *rest)
    shown = text(replace(found, explanation=replace(found.explanation, constants=constants)))
    told = re.findall(r"^  (\w+) .* at its bound \[\d+\]", shown, re.M)
    assert told == [first.name]


def test_own_measurements_stand_under_the_sum() -> None:
    found = one()
    assert found.explanation
    assert "your own measurement" not in text(found)
    moved = replace(
        found,
        step_s=found.step_s.times(1.25),
        explanation=replace(found.explanation, measured_ratio=1.25),
    )
    line = next(each for each in text(moved).splitlines() if "your own measurement" in each)
    assert "× 1.25" in line
    assert seconds(line) == pytest.approx(moved.step_s.best, rel=5e-3)


def test_the_range_names_its_bucket_and_why_it_is_wider() -> None:
    found = one(batch_size=512)
    assert found.explanation
    assert "in log time of cnn/train/xla, learned from " in text(found)
    width = replace(found.explanation.width, groups=63, reasons=("hardly measured",))
    wider = replace(found, explanation=replace(found.explanation, width=width))
    assert "of cnn/train/xla, learned from 63 models on a card. About nine in ten" in text(wider)
    assert "lay inside. Hardly measured." in text(wider)


@pytest.mark.parametrize(
    ("changes", "made"),
    [
        ({}, "kernels fused by tfdyno"),
        ({"execution": "graph"}, "kernels one or a few for each operation"),
        (
            {"made_by": {"time": "exact", "memory": "exact"}, "compiled_for": "8.x"},
            "kernels the compiler's for compute capability 8.x",
        ),
    ],
)
def test_the_list_says_whose_kernels_they_are(changes: dict[str, Any], made: str) -> None:
    assert f"({made}; like ones together, longest first)" in text(replace(one(), **changes))


def test_a_step_that_waits_says_what_share_of_the_kernels_is_listed() -> None:
    assert "of what all kernels take" not in text(one(batch_size=512))
    assert re.search(r"of the step, 9\d% of what all kernels take", text(one(batch_size=1)))


def test_several_cards_have_a_section_each_and_none_is_told_unasked() -> None:
    names = {"a100-sxm4-40gb": "NVIDIA A100", "t4": "Tesla T4"}
    shown = explanations_text([one(), one(gpu="t4", replicas=2)], names)
    assert re.findall(r"^Why .* on (.+)$", shown, re.M) == ["A100", "2 x T4"]
    assert explanations_text([estimated()], names) == ""
    assert explanation_text(estimated(), "NVIDIA A100") == ""
