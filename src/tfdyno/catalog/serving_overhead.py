"""What a request costs beside the model, with where each number is from."""

from __future__ import annotations

from functools import cache
from importlib import resources

from tfdyno.core.base.codec import from_builtins, read_toml
from tfdyno.core.choose.serving_size import ServingOverhead

FILE = "serving_overhead.toml"


@cache
def serving_overhead() -> ServingOverhead:
    """Read the table; raises ``UsageError`` when the file is damaged."""
    values = {name: row["value"] for name, row in _rows().items()}
    return from_builtins(values, ServingOverhead, where=FILE)


@cache
def serving_overhead_sources() -> dict[str, str]:
    """Name of a number to its source."""
    return {name: row["source"] for name, row in _rows().items()}


def _rows() -> dict[str, dict[str, str]]:
    with resources.as_file(resources.files("tfdyno.catalog") / "data" / FILE) as path:
        return read_toml(path)
