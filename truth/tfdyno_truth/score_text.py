"""A score sheet for the terminal: the answer first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.view.base import text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno_truth.judge import Order, Score
    from tfdyno_truth.sheet import Line, Sheet

HEADINGS = ("", "rows", "groups", "mean", "median", "p90", "bias", "holds", "± half")
EXPLAINED = (
    "Error is |predicted - measured| / measured, averaged inside a group (model, card, precision, "
    "mode) first. p90: 90 % of the groups are below. bias: predicted / measured, median. holds: "
    "measured values inside their 90 % interval. ± half: half of the interval's width over the "
    "estimate."
)


def page(sheet: Sheet, how: str) -> str:
    """The whole answer: sentence, table of the wholes, order of pairs, strata.

    Args:
        sheet: The scores.
        how: What the predictions knew, as a sentence without its stop.
    """
    parts = [answer(sheet, how)]
    if sheet.whole:
        parts.append(table(sheet.whole))
        parts.append("\n".join(order_words(line) for line in sheet.whole if line.order))
    parts += [f"{name}, strata, worst first\n{table(lines)}" for name, lines in
              sheet.strata.items()]  # fmt: skip
    if len(sheet.chips) > 1:
        parts.append(f"Cards, worst first\n{table(sheet.chips)}")
    if len(sheet.architectures) > 1:
        parts.append(f"Kinds of model, worst first\n{table(sheet.architectures)}")
    return "\n\n".join([*parts, text.wrapped(EXPLAINED, width=text.terminal_width())])


def answer(sheet: Sheet, how: str) -> str:
    """The mean errors in one sentence, TensorFlow first."""
    found = [
        f"{line.label} {line.score.mean:.1%} ({line.score.groups} groups)"
        for line in sheet.whole
        if line.label != "all" or len(sheet.whole) == 1
    ]
    if not found:
        return f"{how}: all of these rows are bound by launches or have fused attention."
    return f"{how}: mean error {', '.join(found)}."


def order_words(line: Line) -> str:
    """How many pairs of cards are in order, and how many of the close ones."""
    order: Order | None = line.order
    if order is None or not order.pairs:
        return f"{line.label}: no two cards with the same workload"
    words = f"{line.label}: {order.in_order:.1%} of {order.pairs:,} pairs of cards in order"
    if order.close_pairs:
        words += f", {order.close_in_order:.1%} of the {order.close_pairs:,} that are 15-50 % apart"
    if order.own_pairs:
        words += f"; each at its largest batch {order.own_in_order:.1%} of {order.own_pairs:,}"
    return words


def cells(score: Score) -> tuple[str, ...]:
    """The numbers of a score, in the order of ``HEADINGS``."""
    return (
        f"{score.rows:,}",
        f"{score.groups:,}",
        f"{score.mean:.1%}",
        f"{score.median:.1%}",
        f"{score.p90:.1%}",
        f"{score.bias:.2f}",
        f"{score.coverage:.0%}",
        f"{score.half_width:.0%}",
    )


def table(lines: Sequence[Line]) -> str:
    """Scores of sets of rows as aligned columns."""
    rows = [(line.label, *cells(line.score)) for line in lines]
    return text.table(HEADINGS, rows, align="<" + ">" * 8, width=text.terminal_width())
