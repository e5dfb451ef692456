"""view/figure_growth: memory from step to step, and from there to where it is full."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.view.diagnose.test_growth_text import FLAT, GIB, HOST, MIB

from tfdyno.core.base.interval import Interval
from tfdyno.core.measure.step_facts import MemoryCourse
from tfdyno.view.diagnose.figure_growth import moved_figure, outlook_figure

COURSE = MemoryCourse(
    where="host", counted_by="allocator", steps=180, low_bytes_per_step=MIB,
    bytes_per_step=2 * MIB, high_bytes_per_step=4 * MIB, end_bytes=2 * GIB, free_bytes=16 * GIB,
    # Warm until step 180, then 2 MiB a step to 2 GiB at step 360: 2,048 - 360 = 1,688 MiB there.
    course_bytes=tuple(
        (step, round(min(1200 + 4 * step, 1688 + 2 * max(0, step - 180)) * MIB))
        for step in range(4, 361, 4)
    ),
)  # fmt: skip
"""What ``HOST`` of the text is told from."""
WHOSE = "the host’s memory"


def test_the_sentence_has_both_ends_and_the_slope_with_its_interval() -> None:
    found = moved_figure(COURSE, WHOSE)
    assert found
    assert found.label == (
        "What is in use of the host’s memory after each step: 1.19 GiB at step 4, 2 GiB at step "
        "360; the slope of the steady steps is 2 MiB a step (1 MiB to 4 MiB)."
    )
    assert found.caption == "In use, above the least of 1.19 GiB"
    assert [key.variable for key in found.key] == ["c1", "c2", "ink"]
    # By hand: 1200 + 4 x 4 = 1,216 MiB at step 4, and 2,048 MiB at step 360.
    assert (found.table.rows[0], found.table.rows[-1]) == (
        ("4", "1.19 GiB", "0 B"), ("360", "2 GiB", "832 MiB"),
    )  # fmt: skip


def test_both_layouts_take_the_colours_of_the_page() -> None:
    figures = [moved_figure(COURSE, WHOSE), outlook_figure(HOST, WHOSE)]
    for drawing in (one for found in figures if found for one in (found.wide, found.narrow)):
        assert "<svg" in drawing
        assert "#0a0b" not in drawing


@pytest.mark.parametrize("course", [(), ((1, 5),)])
def test_less_than_two_steps_are_not_drawn(course: tuple[tuple[int, int], ...]) -> None:
    assert moved_figure(replace(COURSE, course_bytes=course), WHOSE) is None


def test_memory_that_does_not_move_is_a_flat_line() -> None:
    still = replace(COURSE, low_bytes_per_step=0.0, bytes_per_step=0.0, high_bytes_per_step=0.0,
                    course_bytes=tuple((step, GIB) for step in range(1, 200)))  # fmt: skip
    found = moved_figure(still, WHOSE)
    assert found
    assert ">KiB<" in found.wide  # an axis of some KiB: nothing is blown up
    assert {row[2] for row in found.table.rows} == {"0 B"}


def test_the_outlook_ends_where_all_is_taken() -> None:
    found = outlook_figure(HOST, WHOSE)
    assert found
    assert found.label == (
        "What is in use of the host’s memory from here on at this rate: 2 GiB now, all 18 GiB in "
        "about 3 h (1.5 h to 6 h)."
    )
    for drawing in (found.wide, found.narrow):
        assert ">full in about 3 h<" in drawing
    assert found.key[-1].text == "18 GiB, all there is"
    # 16 GiB at 4, 2 and 1 MiB a step.
    assert found.table.rows == (
        ("fastest", "4 MiB", "4,100", "1.5 h"), ("best", "2 MiB", "8,200", "3 h"),
        ("slowest", "1 MiB", "16,000", "6 h"),
    )  # fmt: skip


def test_a_rate_that_is_known_exactly_has_one_row() -> None:
    exact = replace(HOST, bytes_per_step=Interval(low=MIB, best=MIB, high=MIB))
    found = outlook_figure(exact, WHOSE)
    assert found
    assert [row[0] for row in found.table.rows] == ["best"]


@pytest.mark.parametrize("steps", [0.4, 3.0, 2e6, 3e9])
def test_any_number_of_steps_is_drawn(steps: float) -> None:
    until = Interval(low=steps / 2, best=steps, high=100 * steps)
    found = outlook_figure(replace(HOST, full_in_steps=until, full_in_s=until), WHOSE)
    assert found
    assert "NaN" not in found.narrow + found.wide


def test_without_growth_or_what_is_free_there_is_no_outlook() -> None:
    assert outlook_figure(FLAT, WHOSE) is None
    assert outlook_figure(replace(HOST, full_in_s=None, full_in_steps=None), WHOSE) is None
