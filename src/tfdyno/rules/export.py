"""What a format cannot take, and what to do: the facts that were found in a model, in words."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING

from tfdyno.core.deploy.export import Obstacle
from tfdyno.rules.tables import read_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfdyno.core.deploy.export import ObstacleFact, RefusedNames

TABLE = "export_obstacles.csv"
COLUMNS = ("format", "kind", "name", "why", "remedy", "source")
EVERY = "*"
"""The row that words whatever a converter does not know by its own account."""
_BASES: dict[str, tuple[str, ...]] = {"tensorrt": ("tensorrt", "onnx")}
"""Formats that are made by way of another one."""
_UNKNOWN = ("it cannot be converted", "write that part in another way, or export to savedmodel")


def refused() -> RefusedNames:
    """Return what the table refuses by name: format, then kind (layer, operation, dtype), names."""
    found: dict[str, dict[str, list[str]]] = {}
    for row in read_rows(TABLE, COLUMNS):
        if row["name"] != EVERY:
            found.setdefault(row["format"], {}).setdefault(row["kind"], []).append(row["name"])
    return found


def obstacles(facts: Iterable[ObstacleFact]) -> tuple[Obstacle, ...]:
    """Return the facts with their reason and remedy; one that brings its own keeps them."""
    rows = read_rows(TABLE, COLUMNS)
    return tuple(dict.fromkeys(_worded(fact, rows) for fact in facts))


def sentence(one: Obstacle) -> str:
    """Write ``layer 'words' (LookupTableFindV2): ONNX gets no entries of the table``."""
    where = f"layer '{one.layer}' ({one.operation})" if one.layer else one.operation
    return f"{where}: {one.why}"


def _worded(fact: ObstacleFact, rows: list[dict[str, str]]) -> Obstacle:
    row = _row(fact, rows)
    why, remedy = (row["why"], row["remedy"]) if row else _UNKNOWN
    return Obstacle(
        format=fact.format,
        layer=fact.layer,
        operation=fact.name,
        why=fact.why or why,
        remedy=fact.remedy or remedy,
        source=row["source"] if row else "",
    )


def _row(fact: ObstacleFact, rows: list[dict[str, str]]) -> dict[str, str] | None:
    """Return the first row that names it; one for every name comes last."""
    bases = _BASES.get(fact.format, (fact.format,))
    fitting = [row for base in bases for row in rows
               if row["format"] == base and row["kind"] == fact.kind
               and fnmatch.fnmatchcase(fact.name, row["name"])]  # fmt: skip
    return min(fitting, key=lambda row: row["name"] == EVERY, default=None)
