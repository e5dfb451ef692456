"""Numbers of scores as the words of tables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno_truth.sections import Table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfdyno_truth.judge import Order, Score
    from tfdyno_truth.sheet import Line

SCORED = ("mean", "median", "90 % below", "interval holds", "± half", "bias", "groups", "rows")
ORDERED = ("pairs in order", "15–50 % apart", "own batches")


def scores(heading: str, lines: Iterable[Line]) -> Table:
    """Scores of sets of rows, one a line."""
    rows = tuple((line.label, *scored(line.score)) for line in lines)
    return Table(headings=(heading, *SCORED), rows=rows)


def scored(score: Score) -> tuple[str, ...]:
    """The numbers of a score, in the order of ``SCORED``."""
    return (
        *shares(score.mean, score.median, score.p90),
        f"{score.coverage:.0%}",
        f"{score.half_width:.0%}",
        f"{score.bias:.2f}",
        f"{score.groups:,}",
        f"{score.rows:,}",
    )


def ordered(order: Order | None) -> tuple[str, str, str]:
    """Pairs of cards in the right order: all with one batch, the close ones, own batches."""
    if order is None:
        return "–", "–", "–"
    return (
        f"{share(order.in_order)} of {order.pairs:,}",
        f"{share(order.close_in_order)} of {order.close_pairs:,}",
        f"{share(order.own_in_order)} of {order.own_pairs:,}",
    )


def shares(*values: float) -> tuple[str, ...]:
    """Several shares in per cent."""
    return tuple(share(value) for value in values)


def share(value: float) -> str:
    """A share in per cent with one digit; a dash where there is none."""
    return "–" if math.isnan(value) else f"{value:.1%}"
