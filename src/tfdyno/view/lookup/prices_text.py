"""Fetched price lists as terminal text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.view.base.text import WIDTH, table

if TYPE_CHECKING:
    from collections.abc import Iterable


def fetched_list(
    rows: Iterable[tuple[str, int, str, str]], *, width: int = WIDTH, colour: bool = False
) -> str:
    """Return providers with the number of prices, their source, and what else is to know."""
    cells = [(provider, f"{prices:,}", source, note) for provider, prices, source, note in rows]
    return table(("provider", "prices", "from", ""), cells, align="<><<", width=width, elastic=3,
                 spare=(), colour=colour)  # fmt: skip
