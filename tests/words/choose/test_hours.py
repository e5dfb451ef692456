"""What is told of hours that are not training."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.advice import candidate, exactly, run

from tfdyno.core.choose.advice import HoursPart
from tfdyno.core.choose.workload import Validation
from tfdyno.words.choose.hours import parts_line, validation_words

if TYPE_CHECKING:
    from tfdyno.core.choose.advice import Candidate, HoursKind, Run

A100 = candidate("A100", 11.6, 5.24)


def spending(**hours: float) -> Candidate:
    """Return ten hours that go to these."""
    kinds: dict[HoursKind, float] = hours  # type: ignore[assignment]
    parts = tuple(HoursPart(kind=kind, hours=exactly(best)) for kind, best in kinds.items())
    return replace(A100, hours=exactly(10.0), hours_parts=parts)


def test_what_is_not_training_is_told_the_longest_first() -> None:
    told = parts_line(spending(steps=6.0, validation=1.2, data=2.0, interruptions=0.8))
    assert told == (
        "Of that: waiting for data 2 h (20%), validation 1.2 h (12%) and interruptions 48 min (8%)."
    )


def test_what_is_under_a_percent_is_left_out_but_for_validation() -> None:
    assert parts_line(spending(steps=9.9, compile=0.05, start=0.05)) == ""
    assert parts_line(spending(steps=9.9, compile=0.05, validation=0.05)) == (
        "Of that: validation 3 min (under 1%)."
    )


@pytest.mark.parametrize(
    ("asked", "found", "told"),
    [
        (
            run(epochs=10, validation_samples=410, validation_passes=10),
            Validation(samples=410),
            "validation on 410 samples after each epoch, at the pace of the step's forward pass",
        ),
        (
            run(epochs=10, validation_samples=1, validation_passes=2),
            Validation(samples=1, every_epochs=5),
            "validation on 1 sample 2 times in all, at the pace of the step's forward pass",
        ),
        (run(), Validation(samples=0), "no validation, as in the script's fit"),
        (run(), None, "validation is not in hours and cost (no fit says of what)"),
        (
            run(),
            Validation(samples=None),
            "validation is not in hours and cost (its length cannot be read)",
        ),
        (
            run(length="steps"),
            Validation(samples=410),
            "validation is not in hours and cost (--steps counts training alone)",
        ),
        (
            run(epochs=2),
            Validation(samples=410, every_epochs=5),
            "validation is not in hours and cost (no epoch of the run ends with it)",
        ),
    ],
)
def test_whether_validation_is_counted_is_always_said(
    asked: Run, found: Validation | None, told: str
) -> None:
    assert validation_words(asked, found, "train") == told
    assert validation_words(asked, found, "infer") == ""
