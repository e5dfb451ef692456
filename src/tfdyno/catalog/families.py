"""Which GPUs share a compiled program, and which of them the compiler can serve."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tfdyno.catalog.gpus import find
from tfdyno.catalog.tables import DATA
from tfdyno.core.base.codec import from_builtins, read_toml
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.hardware import Gpu


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """GPUs of one generation."""

    slug: str
    """Major compute capability: ``8.x``."""
    representative: Gpu
    """The card whose facts the compiler is given for all of them."""
    supported: bool
    reason: str
    """Why it is not supported; empty otherwise."""
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    representative: str
    supported: bool
    reason: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    family: str
    served_by: str
    policies: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _DriverMemory:
    clock_mhz: float
    bus_bits: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dear:
    compute_capabilities: tuple[str, ...]
    bytes_per_s: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    version: str
    families: dict[str, _Row]
    shared: tuple[_Shared, ...]
    dear: _Dear
    driver_memory: dict[str, _DriverMemory]
    """Cards whose driver tells another bandwidth than the data sheet."""


@lru_cache(maxsize=1)
def all_families() -> tuple[Family, ...]:
    """Return every family of the catalogue in order of age.

    Raises:
        UsageError: The table is corrupt, or a representative is no card of the catalogue.
    """
    return tuple(
        Family(
            slug=slug,
            representative=find(row.representative),
            supported=row.supported,
            reason=row.reason,
            source=row.source,
        )
        for slug, row in _table().families.items()
    )


def family(slug: str) -> Family:
    """Return the family with this slug; raises ``UsageError`` for an unknown one."""
    found = next((each for each in all_families() if each.slug == slug), None)
    if found is None:
        known = ", ".join(each.slug for each in all_families())
        raise UsageError(f"no GPU family is called {slug!r}", remedy=f"known: {known}")
    return found


def family_of(gpu: Gpu) -> Family:
    """Return the family of a card or a MIG slice.

    A generation newer than the table gets a family that is not supported, not an error.
    """
    slug = f"{gpu.compute_capability.partition('.')[0]}.x"
    known = {each.slug: each for each in all_families()}
    if slug in known:
        return known[slug]
    reason = f"compute capability {gpu.compute_capability or 'unknown'} is not in families.toml"
    return Family(slug=slug, representative=gpu, supported=False, reason=reason, source=gpu.source)


def driver_bytes_per_s(gpu: Gpu) -> float:
    """Return the bandwidth that XLA works out on the card itself: ``2 * clock * bus / 8``.

    Its fusions hang on it, and so does what a step holds. Most data sheets say the same.
    """
    told = _table().driver_memory.get(gpu.slug)
    return 2e6 * told.clock_mhz * told.bus_bits / 8 if told else gpu.memory_bytes_per_s


def keeps_dear(gpu: Gpu) -> bool:
    """Return whether XLA rather keeps a sigmoid or an ``exp`` here than computes it again."""
    rule = _table().dear
    return (
        gpu.compute_capability in rule.compute_capabilities
        and driver_bytes_per_s(gpu) >= rule.bytes_per_s
    )


def served_by(slug: str, *, policy: str, attention: bool) -> str:
    """Return the family whose program serves ``slug`` too: itself, or one with the same program.

    Args:
        slug: Family of the card.
        policy: Keras dtype policy of the model.
        attention: Whether the model multiplies activations by activations.
    """
    for row in _table().shared:
        if row.family == slug and policy in row.policies and not attention:
            return row.served_by
    return slug


@lru_cache(maxsize=1)
def _table() -> _Table:
    path = DATA / "families.toml"
    return from_builtins(read_toml(path), _Table, where=str(path))
