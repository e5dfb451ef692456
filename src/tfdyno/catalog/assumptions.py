"""What the tool assumes where the user says nothing, with where each number is from."""

from __future__ import annotations

from functools import cache
from importlib import resources

from tfdyno.core.base.codec import from_builtins, read_toml
from tfdyno.core.choose.advice import Assumed

FILE = "assumptions.toml"


@cache
def assumed() -> Assumed:
    """Read the assumptions; raises ``UsageError`` when the file is damaged."""
    values = {name: row["value"] for name, row in _rows().items()}
    return from_builtins(values, Assumed, where=FILE)


@cache
def assumption_sources() -> dict[str, str]:
    """Name of an assumption to the source of its number."""
    return {name: row["source"] for name, row in _rows().items()}


def _rows() -> dict[str, dict[str, str]]:
    with resources.as_file(resources.files("tfdyno.catalog") / "data" / FILE) as path:
        return read_toml(path)
