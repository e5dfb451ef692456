"""Axes of a plane."""

from __future__ import annotations

import pytest

from tfdyno.view.draw.plane import blocks, dots, plane, rules, spots


def test_given_ticks_leave_out_what_would_touch_the_one_before() -> None:
    def ticks(*values: float) -> tuple[float, ...]:
        return plane(
            x_range=(0.8, 1400.0), y_range=(1.0, 10.0), x_title="", y_title="",
            x_words=str, y_words=str, narrow=True, x_values=values,
        ).x_ticks  # fmt: skip

    assert ticks(1.0, 8.0, 1024.0) == (1.0, 8.0, 1024.0)
    assert ticks(1.0, 8.0, 9.0, 1024.0) == (1.0, 8.0, 1024.0)


@pytest.mark.parametrize(
    "drawn", [dots([]), rules([]), blocks([], "track")], ids=["dots", "rules", "blocks"]
)
def test_nothing_makes_no_layer(drawn: list[object]) -> None:
    assert drawn == []


def test_a_spot_has_channels_for_what_rows_have_of_their_own() -> None:
    drawn = spots([{"x": 1.0, "y": 2.0, "fill": "#000", "tip": "one"}], size=50)
    assert set(drawn["encoding"]) == {"x", "y", "fill", "description"}
    assert drawn["mark"]["size"] == 50
