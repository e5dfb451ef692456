"""Read a log of any size once and keep what the rules ask for."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tfdyno.rules.causes import Cause, LogRule
from tfdyno.rules.log.reader import Reader
from tfdyno.rules.log.slot import Line, Slot
from tfdyno.rules.log.text import blocks
from tfdyno.rules.tables import read_rows

__all__ = ["KEPT", "Line", "LogFacts", "RuleHits", "scan"]

ERROR = "error"
"""Name of the watches for lines that look like an error, known or not."""
FAULT = "fault"
"""Name of the watches for lines that are one: a program's last words, or of the level error."""
KEPT = 20
"""Lines kept per rule; the rest is counted."""
_PLACE = re.compile(
    rb"""https?://\S+|(?<![\w.+/\\-])(?:[\w.+-]*+[/\\])++[\w.+-]*\.(?:cc|cpp|cu|h|hpp|inc|py|so)\b[\w.]*(?::\d+\]?)?"""
)
"""An address, or a file of source code with its line: its name tells no topic."""
FEW_LINES = 10
"""So long is what a person tells; in a longer log a topic proves nothing and is not looked for."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleHits:
    """Where one rule of one cause was met."""

    cause: str
    rule: LogRule
    lines: tuple[Line, ...]
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFacts:
    """What a log holds of all that the rules know."""

    hits: tuple[RuleHits, ...]
    seen: frozenset[str]
    """Those of the texts that ``also`` and ``unless`` name that stand anywhere."""
    watched: Mapping[str, tuple[Line, ...]]
    """Lines by the name of their watch, in order."""
    errors: tuple[Line, ...]
    """The first lines that look like an error, known or not."""
    faults: tuple[Line, ...]
    """The first lines that are an error, known or not."""
    line_count: int
    byte_count: int


def scan(
    chunks: Iterable[bytes | str],
    causes: Iterable[Cause],
    watches: Iterable[Watch] | None = None,
    also: Callable[[bytes], None] = lambda _block: None,
) -> LogFacts:
    """Read a log once, in memory that does not grow with it.

    Args:
        chunks: The log in pieces of any size: bytes in UTF-8 or UTF-16, or text.
        causes: Whose log rules are looked for.
        watches: Lines that tell facts; those of the table where None.
        also: Given every block too, whole lines in UTF-8: a pipe can be read only once.
    """
    rules = [(cause.id, rule, Slot(rule.needle, rule.match, KEPT, counted=True))
             for cause in causes for rule in cause.log]  # fmt: skip
    watched = all_watches() if watches is None else watches
    told = [(watch, Slot(watch.needle, watch.match, watch.cap)) for watch in watched]
    texts = {text: Slot(text, "", 1) for _, rule, _ in rules for text in rule.also + rule.unless}
    lines = (slot for _, rule, slot in rules if not rule.alone)
    reader = Reader([*lines, *(s for _, s in told), *texts.values()])
    topics = Reader([slot for _, rule, slot in rules if rule.alone])
    for block in blocks(chunks):
        if not reader.byte_count and block.count(b"\n") <= FEW_LINES:
            topics.read(_PLACE.sub(b"", block))
        reader.read(block)
        also(block)
    return LogFacts(
        hits=tuple(
            RuleHits(cause=cause, rule=rule, lines=tuple(slot.lines), count=slot.count)
            for cause, rule, slot in rules
            if slot.count
        ),
        seen=frozenset(text for text, slot in texts.items() if slot.count),
        watched=_by_name(told),
        errors=_errors([slot for watch, slot in told if watch.name == ERROR]),
        faults=_errors([slot for watch, slot in told if watch.name == FAULT]),
        line_count=reader.line_count,
        byte_count=reader.byte_count,
    )


def _by_name(told: list[tuple[Watch, Slot]]) -> dict[str, tuple[Line, ...]]:
    found: dict[str, list[Line]] = defaultdict(list)
    for watch, slot in told:
        found[watch.name] += slot.lines
    return {name: tuple(sorted(lines, key=_number)) for name, lines in found.items() if lines}


def _errors(slots: list[Slot]) -> tuple[Line, ...]:
    unique = {line.text: line for slot in slots for line in slot.lines}
    return tuple(sorted(unique.values(), key=_number))


def _number(line: Line) -> int:
    return line.number
