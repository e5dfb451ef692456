"""An export as terminal text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.view.base.text import WIDTH, paint, pairs, table, wrapped
from tfdyno.words.deploy.export import (
    ALIGN,
    HEADINGS,
    SPARE,
    about,
    answer,
    cells,
    headline,
    notes,
    used_columns,
)

if TYPE_CHECKING:
    from tfdyno.core.deploy.export import ExportResult


def export_text(found: ExportResult, *, width: int = WIDTH, colour: bool = False) -> str:
    """Return the whole answer.

    Args:
        found: What was exported.
        width: Columns of the screen.
        colour: Whether to print bold, red and dim.
    """
    head = wrapped(headline(found) + ".", width=width).split("\n")
    style = "bold" if found.passed else "red"
    rows = [cells(one) for one in found.artefacts]
    used = used_columns(rows)
    blocks = [
        "\n".join([*(paint(line, style, colour=colour) for line in head),
                   wrapped(answer(found), width=width)]),
        table([HEADINGS[i] for i in used], [[row[i] for i in used] for row in rows],
              align="".join(ALIGN[i] for i in used), width=width,
              spare=[used.index(i) for i in SPARE if i in used], colour=colour),
        "\n".join(wrapped(f"{one.format} is not kept: {text}.", width=width)
                  for one in found.artefacts for text in one.failures),
        pairs(about(found), width=width),
        "\n".join(wrapped(f"Note: {text}", width=width) for text in notes(found)),
        "\n".join(f"Wrote {one.path}." for one in found.artefacts if one.kept),
    ]  # fmt: skip
    return "\n\n".join(block for block in blocks if block)
