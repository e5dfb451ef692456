"""The limits and words of the bottleneck rules, as their tables in ``data`` have them."""

from __future__ import annotations

import functools
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from tfdyno.core.base.errors import ToolError
from tfdyno.core.measure.bottleneck import BottleneckClass
from tfdyno.rules.causes import CauseStep, Words
from tfdyno.rules.tables import read_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

DATA = Path(__file__).parent / "data"
_OWN = "../bottleneck/data"
"""The folder of these tables, seen from that of the tables of the rules."""
_LIMIT_COLUMNS = ("name", "value", "unit", "meaning", "source")
_WORD_COLUMNS = ("kind", "pattern", "meaning", "source")
Shares = tuple[float, float, float]
"""Low, best and high share of a part of the step that a fix takes away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What one cause is called, what mends it, and how much of its part of the step that takes."""

    id: str
    summary: Words
    fix: tuple[CauseStep, ...]
    settings: dict[str, str] = field(default_factory=dict)
    removes: Shares = (0.0, 0.0, 0.0)
    defect: bool = False
    """Wrong whatever it costs: the answer is not ``healthy`` while it is there."""
    outranks: bool = False
    """Beyond its limits it leads, however much other things would gain."""
    leads: bool = True
    """False: told, but never the primary one, for nothing in the script mends it."""
    rank: int = 50
    """The order among equal gains: the smaller rank comes first, the simpler and safer change."""
    source: str

    @property
    def bottleneck_class(self) -> str:
        """The first part of the id."""
        return self.id.partition(".")[0]


@functools.cache
def limits() -> dict[str, float]:
    """Read every limit of ``data/limits.csv`` by name; raises ``ToolError`` for a damaged file."""
    rows = read_rows(f"{_OWN}/limits.csv", _LIMIT_COLUMNS)
    return {row["name"]: float(row["value"]) for row in rows}


@functools.cache
def _patterns() -> dict[str, re.Pattern[str]]:
    found: dict[str, list[str]] = {}
    for row in read_rows(f"{_OWN}/words.csv", _WORD_COLUMNS):
        found.setdefault(row["kind"], []).append(row["pattern"])
    return {kind: re.compile("|".join(each), re.IGNORECASE) for kind, each in found.items()}


def matching(kind: str, texts: Iterable[str]) -> tuple[str, ...]:
    """Return the texts in which a word of ``data/words.csv`` of this kind stands."""
    pattern = _patterns()[kind]
    return tuple(text for text in texts if pattern.search(text))


@functools.cache
def cause(identifier: str) -> Cause:
    """Return the cause of an id such as ``input.sequential_map``.

    Raises:
        ToolError: There is none, or its table is damaged.
    """
    name, _, key = identifier.partition(".")
    for one in _group(name):
        if one.id == identifier:
            return one
    raise ToolError(f"no cause '{identifier}' in {name}.toml", why=f"'{key}' is missing")


def all_causes() -> tuple[Cause, ...]:
    """Return every cause of every class."""
    names = sorted(path.stem for path in DATA.glob("*.toml"))
    return tuple(one for name in names for one in _group(name))


@functools.cache
def _group(name: str) -> tuple[Cause, ...]:
    try:
        text = (DATA / f"{name}.toml").read_text(encoding="utf-8")
        tables: dict[str, Any] = tomllib.loads(text)
        found = tuple(_cause(f"{name}.{key}", table) for key, table in tables.items())
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ToolError(f"{name}.toml of the bottlenecks is damaged", why=str(error)) from None
    fault = next((one.id for one in found if not one.fix or not _ordered(one.removes)), "")
    if fault or name not in get_args(BottleneckClass):
        raise ToolError(f"{name}.toml of the bottlenecks is damaged", why=fault or "no such class")
    return found


def _cause(identifier: str, table: dict[str, Any]) -> Cause:
    rest = dict(table)
    steps = [dict(one) for one in rest.pop("fix")]
    low, best, high = rest.pop("removes", (0.0, 0.0, 0.0))
    return Cause(
        id=identifier,
        summary=Words(**rest.pop("summary")),
        fix=tuple(CauseStep(text=Words(**one.pop("text")), **one) for one in steps),
        removes=(low, best, high),
        **rest,
    )


def _ordered(shares: Shares) -> bool:
    return 0.0 <= shares[0] <= shares[1] <= shares[2] <= 1.0
