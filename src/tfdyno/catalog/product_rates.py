"""Reader of what measured matrix products say of cards."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from tfdyno.core.base.codec import from_builtins, read_toml
from tfdyno.core.choose.product_rates import ProductRates

if TYPE_CHECKING:
    from pathlib import Path

FILE = "product_rates.toml"


@lru_cache(maxsize=1)
def product_rates() -> ProductRates:
    """The rates that ship with the tool (``catalog/data/product_rates.toml``)."""
    with as_file(files("tfdyno.catalog") / "data" / FILE) as path:
        return read_product_rates(path)


def read_product_rates(path: Path) -> ProductRates:
    """Read rates; raises ``UsageError`` naming the file and the key."""
    return from_builtins(read_toml(path), ProductRates, where=str(path))
