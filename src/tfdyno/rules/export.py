"""What a format cannot take, and what to do: the facts that were found in a model, in words."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING

from tfdyno.core.deploy.export import Obstacle
from tfdyno.rules.tables import read_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tfdyno.core.deploy.export import Format

TABLE = "export_obstacles.csv"
COLUMNS = ("format", "kind", "name", "why", "remedy", "source")
EVERY = "*"
"""The row that words whatever a converter does not know by its own account."""
_BASES: dict[str, tuple[str, ...]] = {"tensorrt": ("tensorrt", "onnx")}
"""Formats that are made by way of another one."""
_UNKNOWN = ("it cannot be converted", "write that part in another way, or export to savedmodel")


def refused() -> dict[str, dict[str, list[str]]]:
    """What the table refuses by name: format, then kind (layer, operation, dtype), then names."""
    found: dict[str, dict[str, list[str]]] = {}
    for row in read_rows(TABLE, COLUMNS):
        if row["name"] != EVERY:
            found.setdefault(row["format"], {}).setdefault(row["kind"], []).append(row["name"])
    return found


def obstacles(facts: Iterable[Mapping[str, str]]) -> tuple[Obstacle, ...]:
    """The facts (``format``, ``kind``, ``name``, ``layer``) with their reason and remedy.

    A fact that brings its own ``why`` and ``remedy`` keeps them.
    """
    rows = read_rows(TABLE, COLUMNS)
    return tuple(dict.fromkeys(_worded(fact, rows) for fact in facts))


def sentence(one: Obstacle) -> str:
    """``layer 'words' (LookupTableFindV2): ONNX gets no entries of the table``."""
    where = f"layer '{one.layer}' ({one.operation})" if one.layer else one.operation
    return f"{where}: {one.why}"


def _worded(fact: Mapping[str, str], rows: list[dict[str, str]]) -> Obstacle:
    kind: Format = fact["format"]  # type: ignore[assignment]
    row = _row(fact, rows)
    why, remedy = (row["why"], row["remedy"]) if row else _UNKNOWN
    return Obstacle(
        format=kind,
        layer=fact.get("layer", ""),
        operation=fact.get("name") or fact.get("operation", ""),
        why=fact.get("why") or why,
        remedy=fact.get("remedy") or remedy,
        source=fact.get("source") or (row["source"] if row else ""),
    )


def _row(fact: Mapping[str, str], rows: list[dict[str, str]]) -> dict[str, str] | None:
    """The first row that names it; one for every name comes last."""
    bases = _BASES.get(fact["format"], (fact["format"],))
    fitting = [row for base in bases for row in rows
               if row["format"] == base and row["kind"] == fact.get("kind")
               and fnmatch.fnmatchcase(fact.get("name", ""), row["name"])]  # fmt: skip
    return min(fitting, key=lambda row: row["name"] == EVERY, default=None)
