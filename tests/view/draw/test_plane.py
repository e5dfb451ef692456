"""Axes of a plane."""

from __future__ import annotations

from tfdyno.view.draw.plane import plane


def test_given_ticks_leave_out_what_would_touch_the_one_before() -> None:
    def ticks(*values: float) -> tuple[float, ...]:
        return plane(
            x_range=(0.8, 1400.0), y_range=(1.0, 10.0), x_title="", y_title="",
            x_words=str, y_words=str, narrow=True, x_values=values,
        ).x_ticks  # fmt: skip

    assert ticks(1.0, 8.0, 1024.0) == (1.0, 8.0, 1024.0)
    assert ticks(1.0, 8.0, 9.0, 1024.0) == (1.0, 8.0, 1024.0)
