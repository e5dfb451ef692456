"""A section of the accuracy pages: prose and one table, whatever they are written in."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Cells in words; the first ``words`` columns are text, the others numbers."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading with what stands below it."""

    title: str
    prose: str = ""
    """In Markdown: paragraphs, `code` and *emphasis*, no more."""
    table: Table | None = None
    below: bool = False
    """Whether it belongs to the section before it."""

    @property
    def anchor(self) -> str:
        """Its name in links."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


def markdown(section: Section) -> str:
    """The section as Markdown."""
    parts = [f"{'###' if section.below else '##'} {section.title}"]
    parts += [section.prose] if section.prose else []
    if section.table:
        table = section.table
        ruler = [" --- " if i < table.words else " ---: " for i in range(len(table.headings))]
        lines = [_line(table.headings), "|" + "|".join(ruler) + "|", *map(_line, table.rows)]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
