"""Points of the sweep that stand for all of their kind."""

from __future__ import annotations

from tfdyno.runtime.calibrate.points import Point, points


def first_of_each() -> list[Point]:
    """The first point of every operation and form."""
    found: dict[tuple[str, str], Point] = {}
    for one in points("cpu"):
        found.setdefault((one.operation, one.form), one)
    return list(found.values())
