"""A few rows of a table of choices in which every two values of two columns meet: all pairs."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Row = tuple[Any, ...]
Pair = tuple[tuple[int, Any], tuple[int, Any]]
"""Two columns by number, each with a value."""


def pairs_of(row: Sequence[Any]) -> set[Pair]:
    """All pairs of values that meet in a row."""
    return set(itertools.combinations(enumerate(row), 2))


def covering(columns: Sequence[Sequence[Any]], allowed: Callable[[Row], bool]) -> list[Row]:
    """Allowed rows that have every pair that any of them can have.

    Greedy: always the row with the most pairs that are missing, the first of equals. So the same
    columns give the same rows, about as many as the two longest columns have pairs.

    Args:
        columns: The values of each column.
        allowed: Whether a row can be.
    """
    rows = [row for row in itertools.product(*columns) if allowed(row)]
    missing = set().union(*(pairs_of(row) for row in rows))
    chosen: list[Row] = []
    while missing:
        best = max(rows, key=lambda row: len(missing & pairs_of(row)))
        missing -= pairs_of(best)
        chosen.append(best)
    return chosen
