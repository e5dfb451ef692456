"""What the tool assumes where the user says nothing, with where each number is from."""

from __future__ import annotations

from functools import cache
from typing import TypeVar

from tfdyno.catalog.tables import DATA
from tfdyno.core.base.codec import from_builtins, read_toml
from tfdyno.core.choose.advice import Assumed
from tfdyno.core.choose.serving_size import ServingOverhead

T = TypeVar("T")
FILE, SERVING_FILE = "assumptions.toml", "serving_overhead.toml"


@cache
def assumed() -> Assumed:
    """Read the assumptions; raises ``UsageError`` when the file is damaged."""
    return read_values(FILE, Assumed)


@cache
def assumption_sources() -> dict[str, str]:
    """Name of an assumption to the source of its number."""
    return _sources(FILE)


@cache
def serving_overhead() -> ServingOverhead:
    """Read what a request costs beside the model; raises ``UsageError`` for a damaged file."""
    return read_values(SERVING_FILE, ServingOverhead)


@cache
def serving_overhead_sources() -> dict[str, str]:
    """Name of a number of ``serving_overhead`` to its source."""
    return _sources(SERVING_FILE)


def read_values(file: str, kind: type[T]) -> T:
    """Return the values of a file in which every number has a source beside it."""
    rows = read_toml(DATA / file)
    return from_builtins({name: row["value"] for name, row in rows.items()}, kind, where=file)


def _sources(file: str) -> dict[str, str]:
    return {name: row["source"] for name, row in read_toml(DATA / file).items()}
