"""The steps of a training in their order, drawn."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.view.diagnoses import DIAGNOSIS, STAGED, STALLS, TIMELINE

from tfdyno.core.measure.step_facts import TimelineFacts
from tfdyno.view.diagnose.course import KINDS
from tfdyno.view.diagnose.figure_course import COLOURS, course_figure
from tfdyno.view.draw.palette import BY_NAME


def test_every_kind_of_stall_has_a_colour() -> None:
    assert set(COLOURS) == set(KINDS)
    assert set(COLOURS.values()) <= set(BY_NAME)


def test_stalls_are_marked_named_and_listed() -> None:
    found = course_figure(TIMELINE, STAGED)
    assert found
    assert found.label == (
        "Time of each step in the order they ran, 60 steps of 407 ms to 1.60 s (after warm-up); 5 "
        "that took much longer are marked by what was in them."
    )
    assert [key.text for key in found.key] == [
        "time from one step to the next", "the step alone, 160 ms", "long: validation",
        "long: tracing", "long: callbacks", "long: start of an epoch",
        "long: nothing that was timed",
    ]  # fmt: skip
    assert [row[0] for row in found.table.rows] == [str(one.step) for one in STALLS]
    assert found.table.rows[2] == ("41", "1.60 s", "tracing 1.10 s")
    assert found.wide.count("data-tip") == len(STALLS)
    assert ">1.60 s<" in found.wide
    assert "log scale" in found.wide  # from 160 ms to 1.6 s


def test_even_steps_stand_on_a_linear_axis_from_0() -> None:
    even = TimelineFacts(whole_s=(0.1, 0.11, 0.12) * 10)
    found = course_figure(even, DIAGNOSIS)
    assert found
    assert "log scale" not in found.wide
    assert ">0<" in found.wide
    assert found.table.rows == (
        ("shortest", "100 ms", ""), ("middle", "110 ms", ""), ("longest", "120 ms", ""),
    )  # fmt: skip


@pytest.mark.parametrize(
    "timeline",
    [None, TimelineFacts(), TimelineFacts(whole_s=(0.1,)), TimelineFacts(whole_s=(0.0, 0.1))],
)
def test_too_little_is_not_drawn(timeline: TimelineFacts | None) -> None:
    assert course_figure(timeline, DIAGNOSIS) is None


def test_thousands_of_steps_make_a_small_drawing() -> None:
    many = replace(TIMELINE, whole_s=(0.1, 0.2) * 5000, stalls=())
    found = course_figure(many, DIAGNOSIS)
    assert found
    assert len(found.wide) < 20_000
