"""Bars of amounts stand on an axis from 0 to a round end."""

from __future__ import annotations

import pytest

from tfdyno.view.draw import bars
from tfdyno.view.draw.bars import Row, Segment
from tfdyno.view.draw.labels import text_width
from tfdyno.view.draw.svg import FONT_PX


def row(*values: float) -> Row:
    segments = tuple(Segment(variable="c1", value=value, tip="") for value in values)
    return Row(name="a", number="1", segments=segments)


@pytest.mark.parametrize(
    ("value", "step"), [(0.7, 1.0), (1.0, 1.0), (1.1, 2.0), (3.0, 5.0), (5.1, 10.0), (0.03, 0.05)]
)
def test_ticks_stand_at_round_numbers(value: float, step: float) -> None:
    assert bars._round_step(value) == pytest.approx(step)


def test_the_axis_holds_the_longest_bar_and_the_limit() -> None:
    chart = bars.absolute((row(10.0, 20.0), row(5.0)), "ms")
    assert (chart.end, chart.ticks) == (30.0, (0.0, 10.0, 20.0, 30.0))  # 30 / 4 -> steps of 10
    further = bars.absolute((row(30.0),), "ms", limit=70.0, limit_text="the step")
    assert (further.end, further.limit, further.limit_text) == (80.0, 70.0, "the step")


@pytest.mark.parametrize("limit", [0.1, 29.9])
def test_the_words_of_a_limit_stay_within_a_narrow_figure(limit: float) -> None:
    text = "the step alone: 2.58 ms"
    chart = bars.absolute((row(30.0),), "ms", limit=limit, limit_text=text)
    layout = bars._Layout(360, 2, 14, 42, 14, 21, narrow=True)
    words = bars._limit(chart, layout, 100.0)[-1]["data"]["values"][0]
    middle_px = layout.left_px + words["a"] / chart.end * layout.width_px
    half_px = text_width(text, FONT_PX) / 2
    assert middle_px - half_px >= -1e-9
    assert middle_px + half_px <= layout.total_px + 1e-9
