"""Public price lists: where each is, what is wrong with it, and which card a name means."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Literal

from tfdyno.catalog.offer_rules import MEMORY_TOLERANCE_RATIO
from tfdyno.catalog.tables import DATA, read_table
from tfdyno.core.base.codec import from_builtins, read_toml
from tfdyno.core.base.errors import UsageError

VARIABLE = "TFDYNO_PRICES_"
"""Before the name of a source in capitals: the variable that replaces its address."""
NO_CARD = "-"
"""Instead of a GPU: another maker's chip, which is left out without a word."""
ANY_PROVIDER = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """One provider's list within a source, and what has to be known to read it."""

    provider: str
    """As ``offers.csv`` has it."""
    zone_suffix: str = ""
    """Expression for the end of a location that is a zone of a region, and is cut off."""
    one_price: bool = False
    """Rows of a machine that cost the same in all its regions become one."""
    count_in_instance: bool = False
    """Machines with other counts share a name: the count goes before it."""
    name_in_instance: str = ""
    """Expression whose group is the card's true name within the machine's."""
    memory_of: Literal["card", "machine"] = "card"
    memory_unit: Literal["MiB", "GB"] = "MiB"
    hosts: dict[str, str] = field(default_factory=dict)
    """Machines priced without their GPUs, and the count and name of those."""
    known_wrong: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceSource:
    """Lists of several providers that one project publishes."""

    name: str
    title: str
    kind: Literal["gpuhunt", "lium", "skypilot", "vast"]
    url: str
    licence: str
    most_bytes: int
    """A larger answer is no price list."""
    skip_flags: tuple[str, ...]
    """Rows with one of these are no price of a machine that anybody gets."""
    known_wrong: tuple[str, ...]
    source: str
    lists: dict[str, PriceList]
    """By the name that the source gives the provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardName:
    """What a name in a list means."""

    provider: str
    name: str
    """May have ``*`` and ``?``, as ``instance``."""
    instance: str
    memory_gb: float
    """Of one card; 0: whatever the list says."""
    gpu_slug: str
    gpu_count: float
    """Instead of the count in the list, where that is known to be wrong; 0: as listed."""

    @property
    def exactness(self) -> tuple[bool, bool, bool]:
        """Which of two rows goes before the other."""
        return self.provider != ANY_PROVIDER, bool(self.instance), self.memory_gb > 0


@functools.lru_cache(maxsize=1)
def price_sources() -> tuple[PriceSource, ...]:
    """Return the sources with their own addresses, the most trusted first."""
    raw = read_toml(DATA / "price_sources.toml")
    return tuple(
        from_builtins({"name": name, **table}, PriceSource, where="price_sources.toml")
        for name, table in raw.items()
    )


def sources_in_use(only: tuple[str, ...] = ()) -> tuple[PriceSource, ...]:
    """Return the sources at the addresses that the environment gives them.

    Args:
        only: Names; empty means all.

    Raises:
        UsageError: A variable holds no address of http or https.
    """
    return tuple(_moved(one) for one in price_sources() if not only or one.name in only)


def _moved(source: PriceSource) -> PriceSource:
    variable = f"{VARIABLE}{source.name.upper()}"
    url = os.environ.get(variable, "").strip().rstrip("/")
    if not url:
        return source
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"{variable} is '{url}'", remedy="give an address of http or https")
    return replace(source, url=url)


@functools.lru_cache(maxsize=1)
def card_names() -> tuple[CardName, ...]:
    """Return the table of names; raises ``ToolError`` where it is corrupt."""
    columns = ("provider", "name", "instance", "memory_gb", "gpu_slug", "gpu_count", "source")
    rows = read_table(
        DATA / "price_cards.csv", columns, key=("provider", "name", "instance", "memory_gb")
    )
    return tuple(
        CardName(
            provider=row.text("provider"),
            name=row.text("name"),
            instance=row.text("instance"),
            memory_gb=row.number("memory_gb", default=0.0),
            gpu_slug=row.text("gpu_slug"),
            gpu_count=row.number("gpu_count", default=0.0),
        )
        for row in rows
    )


@functools.lru_cache(maxsize=65536)
def card_of(provider: str, name: str, instance: str, memory_gb: float) -> CardName | None:
    """Return what a name means by the most exact row of the table; None: no row, or two apart.

    Args:
        provider: As ``offers.csv`` has it.
        name: The card as the list names it.
        instance: The machine as the list names it.
        memory_gb: Memory of one card as the list states it; 0: not stated.
    """
    fitting = [
        one
        for one in card_names()
        if one.provider in (ANY_PROVIDER, provider)
        and fnmatchcase(name, one.name)
        and (not one.instance or fnmatchcase(instance, one.instance))
        and (not one.memory_gb or abs(memory_gb / one.memory_gb - 1) <= MEMORY_TOLERANCE_RATIO)
    ]
    best = max((one.exactness for one in fitting), default=None)
    first = [one for one in fitting if one.exactness == best]
    return first[0] if len({(one.gpu_slug, one.gpu_count) for one in first}) == 1 else None
