"""The axis of bars that show amounts: from 0 to a round end."""

from __future__ import annotations

import math

from tfdyno.view.draw.bars import BarChart, Row


def absolute(
    rows: tuple[Row, ...], title: str, *, limit: float = 0.0, limit_text: str = ""
) -> BarChart:
    """Draw rows on an axis that ends at a round number beyond the longest bar, and a limit."""
    longest = max([limit, *(sum(segment.value for segment in row.segments) for row in rows)])
    step = _round_step(longest / 4)
    end = step * math.ceil(longest / step - 1e-9)
    ticks = tuple(step * k for k in range(round(end / step) + 1))
    return BarChart(
        rows=rows, end=end, ticks=ticks, tick_format=",~f", axis_title=title, limit=limit,
        limit_text=limit_text,
    )  # fmt: skip


def _round_step(value: float) -> float:
    """Return the next 1, 2 or 5 × a power of ten at or above ``value``."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= value * (1 - 1e-9))
