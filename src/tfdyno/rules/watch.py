"""Lines of a log that tell a fact without being a fault: versions, cards, libraries."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from tfdyno.rules.tables import read_rows

ERROR = "error"
"""Name of the watches for lines that look like an error, known or not."""
FAULT = "fault"
"""Name of the watches for lines that are one: a program's last words, or of the level error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A line worth keeping, with the values that its expression names."""

    name: str
    """The name under which ``LogFacts.watched`` holds the lines."""
    needle: str
    """Lower-case text that the line holds."""
    match: str = ""
    """Regular expression, ignoring case, that the line must also match; names values."""
    cap: int = 20
    """Lines kept."""


@functools.cache
def all_watches() -> tuple[Watch, ...]:
    """Return those of ``watches.csv``; raises ``ToolError`` where it is corrupt."""
    rows = read_rows("watches.csv", ("name", "needle", "match", "cap", "source"))
    return tuple(
        Watch(name=row["name"], needle=row["needle"], match=row["match"], cap=int(row["cap"]))
        for row in rows
    )
