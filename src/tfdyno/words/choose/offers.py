"""Price lists in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.words.base.amounts import plural
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_CAUSES = 3


def left_out_note(path: str, reasons: Sequence[Sequence[str]]) -> str:
    """Return one sentence on the rows of a price list that stay out; empty where all are taken.

    Args:
        path: The list, as the user named it.
        reasons: Of every row that is out.
    """
    if not reasons:
        return ""
    causes = list(dict.fromkeys(say(" and ").join(texts) for texts in reasons))
    left = len(causes) - _MOST_CAUSES
    return say(
        "{rows} of {path} was left out: {causes}{more}."
        if len(reasons) == 1
        else "{rows} of {path} were left out: {causes}{more}.",
        rows=plural(len(reasons), "row"),
        path=path,
        causes=say("; ").join(causes[:_MOST_CAUSES]),
        more=say("; and {count} more causes", count=left) if left > 0 else "",
    )
