"""Which choices nothing else beats on both of two costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def pareto_front(points: Sequence[tuple[float, float]]) -> tuple[int, ...]:
    """Return indices of the points that no other point beats, ordered by the first coordinate.

    A point beats another when it is no greater in both coordinates and smaller in one; of equal
    points the first stays. Sort by the first coordinate, keep each new low of the second:
    O(n log n).

    Args:
        points: Pairs of costs, smaller is better (hours and US$).
    """
    front: list[int] = []
    lowest = float("inf")
    for index in sorted(range(len(points)), key=lambda i: (points[i], i)):
        if points[index][1] < lowest:
            lowest = points[index][1]
            front.append(index)
    return tuple(front)
