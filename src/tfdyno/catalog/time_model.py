"""Readers of the constants of the time and memory models."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any

from tfdyno.core.codec import from_builtins, read_toml
from tfdyno.core.errors import UsageError
from tfdyno.core.time_model import BucketWidth, MemoryModel, Parameter, TimeModel

if TYPE_CHECKING:
    from pathlib import Path


@lru_cache(maxsize=1)
def time_model() -> TimeModel:
    """The constants that ship with the tool (``catalog/data/time_model.toml``)."""
    with as_file(files("tfdyno.catalog") / "data" / "time_model.toml") as path:
        return read_time_model(path)


@lru_cache(maxsize=1)
def memory_model() -> MemoryModel:
    """The constants that ship with the tool (``catalog/data/memory_model.toml``)."""
    with as_file(files("tfdyno.catalog") / "data" / "memory_model.toml") as path:
        return read_memory_model(path)


def read_time_model(path: Path) -> TimeModel:
    """Read constants and interval widths; raises ``UsageError`` naming the file and the key."""
    table = _table(path, {"version", "parameters", "intervals", "sustained_clock"})
    return TimeModel(
        version=str(table["version"]),
        parameters=_parameters(table["parameters"], path),
        sustained_clock=_clocks(table["sustained_clock"], path),
        sustained_clock_source={
            slug: str(entry["source"]) for slug, entry in table["sustained_clock"].items()
        },
        intervals=_intervals(table["intervals"], path),
    )


def read_memory_model(path: Path) -> MemoryModel:
    """Read constants of the memory model; raises ``UsageError`` naming the file and the key."""
    table = _table(path, {"version", "measured_on", "parameters"})
    return MemoryModel(
        version=str(table["version"]),
        parameters=_parameters(table["parameters"], path),
        measured_on={str(key): str(card) for key, card in table["measured_on"].items()},
    )


def _table(path: Path, keys: set[str]) -> dict[str, Any]:
    table = read_toml(path)
    if set(table) != keys:
        raise UsageError(
            f"{path} has the wrong tables",
            why=f"expected {', '.join(sorted(keys))}, found {', '.join(sorted(table))}",
        )
    return table


def _intervals(raw: dict[str, dict[str, object]], path: Path) -> dict[str, BucketWidth]:
    if "default" not in raw:
        raise UsageError(f"{path} has no intervals.default")
    return {
        bucket: from_builtins(fields, BucketWidth, where=f"{path} [intervals.{bucket}]")
        for bucket, fields in raw.items()
    }


def _clocks(raw: dict[str, dict[str, object]], path: Path) -> dict[str, float]:
    found = {}
    for slug, entry in raw.items():
        ratio = entry.get("ratio")
        if set(entry) != {"ratio", "source"} or not isinstance(ratio, float) or not 0 < ratio < 2:
            raise UsageError(
                f"{path}: sustained_clock.{slug} needs a ratio between 0 and 2 and a source"
            )
        found[slug] = ratio
    return found


def _parameters(raw: dict[str, dict[str, object]], path: Path) -> dict[str, Parameter]:
    return {
        name: from_builtins({"name": name, **fields}, Parameter, where=f"{path} [{name}]")
        for name, fields in raw.items()
    }
