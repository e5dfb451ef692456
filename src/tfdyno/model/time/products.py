"""Seconds of the arithmetic of dense matrix products, from what measured products reach.

A product of ``batch`` pairs m x k and k x n takes

    C = min over s in 1, 2, 4 ... 64 of
        sqrt(lone^2 + (tiles s / SM)^2) (k/s + prologue) 2 tile^2 / (peak_ratio peak / SM)
        + (split if s > 1)

with tiles = batch ceil(m/tile) ceil(n/tile): tiles fill the SMs, and a product of few tiles is
split along k where that is faster. m and n may be exchanged, so the law serves forward products and
both products of the backward pass alike. Constants, errors and where they come from:
``catalog/data/product_rates.toml``; ``tfdyno-truth products`` makes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.core.choose.product_rates import ProductRate
from tfdyno.model.time.peaks import peak_flops_per_s

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.product_rates import ProductLaw, ProductRates, ProductUnit
    from tfdyno.model.time.peaks import Unit

    Floats = NDArray[np.float64]

SPLITS = 2.0 ** np.arange(7)
"""Into how many parts along k a product may be split."""
_UNITS: dict[Unit, ProductUnit] = {
    "fp16_tensor": "half",
    "bf16_tensor": "half",
    "tf32_tensor": "tf32",
    "fp8_tensor": "fp8",
    "int8_tensor": "fp8",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Products:
    """Products of one program; arrays of one length."""

    m: Floats
    n: Floats
    k: Floats
    batch: Floats
    """How many products of that shape one kernel computes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductCard:
    """One card as products of one type see it."""

    sm_count: int
    peak_flops_per_s: float
    rate: ProductRate


def product_card(
    gpu: Gpu, unit: Unit, rates: ProductRates, *, clock_ratio: float = 1.0
) -> ProductCard:
    """Look up what the arithmetic needs.

    Args:
        gpu: A card or a MIG slice.
        unit: What multiplies there, as ``kernel_time.peak_unit`` tells it for a type.
        rates: What measured products reach.
        clock_ratio: Share of its clock that the card holds under load; of no account where its
            products were measured, which says it already.
    """
    rate = rate_of(gpu, unit_of_products(unit), rates)
    return ProductCard(
        sm_count=gpu.sm_count,
        peak_flops_per_s=peak_flops_per_s(gpu, unit) * (1.0 if rate.measured else clock_ratio),
        rate=rate,
    )


def unit_of_products(unit: Unit) -> ProductUnit:
    """Return the rows of the table of products that a unit of the data sheet belongs to."""
    return _UNITS.get(unit, "cuda")


def rate_of(gpu: Gpu, unit: ProductUnit, rates: ProductRates) -> ProductRate:
    """Return the row that names the card, else the one for all others."""
    card = f"{gpu.rates.compute_capability} {gpu.rates.variant}"
    rows = [rate for rate in rates.rates if rate.unit == unit]
    return next((rate for rate in rows if card in rate.cards), None) or next(
        rate for rate in rows if not rate.cards
    )


def compute_seconds(products: Products, card: ProductCard, law: ProductLaw) -> Floats:
    """Return seconds of every product's arithmetic alone: C of the module's first lines."""
    tiles = products.batch * np.ceil(products.m / law.tile) * np.ceil(products.n / law.tile)
    splits = SPLITS[:, None]
    fill = np.hypot(law.lone_tiles, tiles * splits / card.sm_count)
    flops_of_tile = (products.k / splits + law.prologue) * 2.0 * law.tile**2
    s_per_flop = card.sm_count / (card.rate.peak_ratio * card.peak_flops_per_s)
    by_split = fill * flops_of_tile * s_per_flop + law.split_s * (splits > 1)
    return np.asarray(by_split.min(axis=0))
