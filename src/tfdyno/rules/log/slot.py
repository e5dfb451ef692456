"""What is looked for in a log by one needle and one expression, and the lines where it stands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from tfdyno.core.base.errors import ToolError
from tfdyno.core.doctor.finding import Evidence

if TYPE_CHECKING:
    from tfdyno.rules.log.view import View

LONGEST_TEXT = 400
"""Characters of a line that are kept as evidence."""
REACH = 1000
"""Characters before and behind a needle that an expression may look at in a very long line."""
MOST_WINDOWS = 8
_PARAGRAPH = 3
"""Lines after a find in which no part of the same, wrapped, message is taken for another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of the log with what was read off it."""

    number: int
    """The number from 1."""
    text: str
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def evidence(self) -> Evidence:
        """The line as a finding quotes it."""
        return Evidence(text=self.text, source=f"line {self.number}")


@dataclass(slots=True, eq=False)
class Slot:
    r"""What is looked for by one needle and one expression, and what was found.

    >>> slot = Slot(needle="loss", match=r"loss: (?P<loss>nan|inf)", cap=20)
    >>> slot.take(View([b"step 2 loss: nan"], position=0, number=7))
    'whole'
    >>> slot.lines
    [Line(number=7, text='step 2 loss: nan', values={'loss': 'nan'})]
    """

    needle: str
    """Lower-case text that a line holds."""
    match: str
    """Regular expression that it must match as well; the values of its groups are kept."""
    cap: int
    """Lines kept."""
    counted: bool = False
    """Whether lines beyond the cap are counted."""
    lines: list[Line] = field(default_factory=list)
    count: int = 0
    last: int = -9
    """Number of the last line found."""
    _expression: re.Pattern[str] | None = None

    @property
    def is_full(self) -> bool:
        """Whether lines are only counted from now on."""
        return len(self.lines) >= self.cap

    @property
    def is_done(self) -> bool:
        """Whether nothing that follows changes it."""
        return self.is_full and not self.counted

    def take(self, view: View) -> Literal["", "whole", "glued"]:
        """Keep or count the line where it, or what it was parted from, is what is looked for.

        Raises:
            ToolError: The expression is none.
        """
        kind: Literal["whole", "glued"] = "whole"
        found = self.found_in(view.texts)
        if found is None and self.last < view.number - _PARAGRAPH:
            kind = "glued"
            found = self.found_in(view.glued)
        if found is None:
            return ""
        if not self.is_full:
            text, values = found
            line = Line(number=view.number, text=_shortened(text, self.needle), values=values)
            self.lines.append(line)
        self.count += 1
        self.last = view.number
        return kind

    def _compiled(self) -> re.Pattern[str]:
        if self._expression is None:  # compiled when first needed: there are hundreds
            try:
                self._expression = re.compile(self.match, re.IGNORECASE)
            except re.error as error:
                raise ToolError(
                    f"the rule '{self.match}' is no regular expression", why=str(error)
                ) from None
        return self._expression

    def found_in(self, texts: Iterable[tuple[str, str]]) -> tuple[str, Mapping[str, str]] | None:
        """Return the first of these texts that is what is looked for, with the values read off it.

        Args:
            texts: Each with its lower-case form.
        """
        expression = self._compiled()
        for text, lowered in texts:
            if self.needle not in lowered:
                continue
            for window in windows(text, lowered, self.needle):
                if found := expression.search(window):
                    values = {name: one.strip() for name, one in found.groupdict().items() if one}
                    return text, values
        return None


def windows(text: str, lowered: str, needle: str) -> tuple[str, ...]:
    """Return the text; of a very long one, what stands around the first places of the needle.

    An expression may take the square of a line's length, and a damaged log is one long line.
    """
    if len(text) <= 2 * REACH:
        return (text,)
    at = lowered.find(needle)
    found: list[str] = []
    while at >= 0 and len(found) < MOST_WINDOWS:
        found.append(text[max(0, at - REACH) : at + len(needle) + REACH])
        at = lowered.find(needle, at + len(needle) + REACH)
    return tuple(found)


def _shortened(text: str, needle: str) -> str:
    """Return the part of a long line around what was found."""
    text = text.strip()
    if len(text) <= LONGEST_TEXT:
        return text
    at = max(0, text.lower().find(needle) - LONGEST_TEXT // 4)
    return ("…" if at else "") + text[at : at + LONGEST_TEXT] + "…"
