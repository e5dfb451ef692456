"""Elements of a list taken out, with their comma and the comment above."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfdyno.rules.horovod.draft import Draft

Row = ast.List | ast.Tuple


def without(draft: Draft, row: Row, gone: list[ast.expr]) -> None:
    """Take elements out of a list.

    Args:
        draft: Takes the changes.
        row: The list.
        gone: Of its elements, at least one.
    """
    script = draft.script
    if all(script.is_alone(one, ",") for one in gone):
        for one in gone:
            patch = script.lines_cut(one.lineno, one.end_lineno or one.lineno)
            draft.cut(patch.start, patch.end)
        return
    for first, last in _runs(row.elts, gone):
        before, after = row.elts[:first], row.elts[last + 1 :]
        start, end = script.span(row.elts[first])[0], script.span(row.elts[last])[1]
        if after:
            draft.cut(start, script.span(after[0])[0])
        elif before:
            draft.cut(script.span(before[-1])[1], end)
        else:
            draft.cut(start, script.span(row)[1] - 1)


def _runs(elements: list[ast.expr], gone: list[ast.expr]) -> list[tuple[int, int]]:
    """First and last index of neighbours that go."""
    runs: list[tuple[int, int]] = []
    for number, one in enumerate(elements):
        if one not in gone:
            continue
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs
