"""Price lists in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.words.base.amounts import plural

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
    was = "was" if len(reasons) == 1 else "were"
    causes = list(dict.fromkeys(" and ".join(texts) for texts in reasons))
    more = f"; and {len(causes) - _MOST_CAUSES} more causes" if len(causes) > _MOST_CAUSES else ""
    rows = plural(len(reasons), "row")
    return f"{rows} of {path} {was} left out: {'; '.join(causes[:_MOST_CAUSES])}{more}."
