"""Readers of the constants of the time and memory models."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tfdyno.catalog.tables import DATA
from tfdyno.core.base.codec import from_builtins, read_toml
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.product_rates import ProductRates
from tfdyno.core.choose.time_model import KERNELS, BucketWidth, MemoryModel, Parameter, TimeModel

if TYPE_CHECKING:
    from pathlib import Path

KERNEL_TABLES = {"version", "generations", "measured", "parameters", "software", "intervals"}
PRODUCTS_FILE = "product_rates.toml"


@lru_cache(maxsize=8)
def time_model(generation: str = "") -> TimeModel:
    """Return the constants that ship with the tool, for one generation of software.

    Args:
        generation: As ``catalog.generations`` names it; empty: those that all share, with the law
            and the software of the oldest (``catalog/data/time_model.toml``). Later ones add what
            ``kernel_model.toml`` holds for them.
    """
    base = read_time_model(DATA / "time_model.toml")
    return with_generation(base, kernel_tables(), generation) if generation else base


@lru_cache(maxsize=1)
def kernel_tables() -> dict[str, Any]:
    """Read ``catalog/data/kernel_model.toml`` as it stands: what later generations add."""
    return _table(DATA / "kernel_model.toml", KERNEL_TABLES)


def with_generation(base: TimeModel, tables: dict[str, Any], generation: str) -> TimeModel:
    """Return the constants of a generation over those that all share.

    Raises:
        UsageError: A constant is damaged, or the generation is unknown.
    """
    if generation not in tables["generations"]:
        raise UsageError(f"there is no generation of software '{generation}'")
    executions = frozenset(tables["generations"][generation]["kernel_executions"])
    if not executions:
        return replace(base, generation=generation)
    path = DATA / "kernel_model.toml"
    own = tables["software"].get(generation, {})
    found = {**_parameters(tables["parameters"], path), **_parameters(own, path)}
    return replace(
        base,
        version=tables["version"],
        parameters={**base.parameters, **found},
        intervals={
            **base.intervals,
            **{f"{KERNELS}/{k}": v for k, v in _intervals(tables["intervals"], path).items()},
        },
        generation=generation,
        kernel_executions=executions,
        measured_capabilities=frozenset(tables["measured"]["capabilities"]),
        product_rates=product_rates(),
    )


@lru_cache(maxsize=1)
def memory_model() -> MemoryModel:
    """Return the constants that ship with the tool (``catalog/data/memory_model.toml``)."""
    return read_memory_model(DATA / "memory_model.toml")


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


@lru_cache(maxsize=1)
def product_rates() -> ProductRates:
    """Return the rates that ship with the tool (``catalog/data/product_rates.toml``)."""
    return read_product_rates(DATA / PRODUCTS_FILE)


def read_product_rates(path: Path) -> ProductRates:
    """Read rates; raises ``UsageError`` naming the file and the key."""
    return from_builtins(read_toml(path), ProductRates, where=str(path))
