"""Seconds of fused attention, which keeps its scores on the chip, from what measured kernels reach.

Blocks of ``block`` queries of one head meet all keys; each score costs its products on the tensor
cores and one exponential on the special function units, one after the other:

    t = floor + (C^p + M^p)^(1/p)
    C = sqrt(lone^2 + (blocks / SM)^2) scores (FLOPs / (peak_ratio peak / SM) + 1 / (exp clock))
    M = (queries and results + keys and values) bytes / (bandwidth_ratio bandwidth)

with blocks = batch heads ceil(queries / block), scores = block keys, or block (keys + block) / 2
under a causal mask, and FLOPs = 4 head_dim a score. The constants and their errors are the rows
``attention`` of ``catalog/data/product_rates.toml``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tfdyno.core.choose.product_rates import ProductRate

if TYPE_CHECKING:
    from tfdyno.core.choose.product_rates import ProductLaw, ProductRates

    Floats = NDArray[np.float64]

PRODUCTS = 2.0
"""Products of one head_dim for every score."""
TENSORS = 2.0
"""Tensors as large as the queries that pass through memory, and as many as large as the keys."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attentions:
    """Fused attentions of one program; arrays of one length."""

    batch: Floats
    heads: Floats
    key_heads: Floats
    """Heads of the keys and values; fewer than ``heads`` where queries share them."""
    head_dim: Floats
    queries: Floats
    keys: Floats
    causal: NDArray[np.bool_]
    """Whether a query meets only the keys up to its own place."""
    element_bytes: Floats

    @property
    def scores(self) -> Floats:
        """Pairs of a query and a key that meet."""
        met = np.where(self.causal, 0.5, 1.0) * self.queries * self.keys
        return self.batch * self.heads * met

    @property
    def flops(self) -> Floats:
        """FLOPs of the forward pass: two products of two FLOPs per multiply-add."""
        return 2.0 * PRODUCTS * self.head_dim * self.scores


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionCard:
    """One card as fused attention sees it."""

    sm_count: int
    peak_flops_per_s: float
    clock_hz: float
    """The clock of the special function units."""
    bandwidth_bytes_per_s: float
    rate: ProductRate


def attention_seconds(attentions: Attentions, card: AttentionCard, rates: ProductRates) -> Floats:
    """Return seconds of every attention on the GPU, launching from the host not counted."""
    compute_s = attention_compute_seconds(attentions, card, rates)
    bandwidth = card.rate.bandwidth_ratio * card.bandwidth_bytes_per_s
    memory_s = attention_bytes(attentions) / bandwidth
    return together(compute_s, memory_s, card.rate.floor_s, rates.law)


def attention_compute_seconds(
    attentions: Attentions, card: AttentionCard, rates: ProductRates
) -> Floats:
    """Return seconds of the arithmetic alone: C of the module's first lines."""
    block = rates.attention.block
    s_per_flop = card.sm_count / (card.rate.peak_ratio * card.peak_flops_per_s)
    s_per_score = 2.0 * PRODUCTS * attentions.head_dim * s_per_flop + 1.0 / (
        rates.attention.exp_per_clock * card.clock_hz
    )
    blocks = attentions.batch * attentions.heads * np.ceil(attentions.queries / block)
    fill = np.hypot(rates.law.lone_tiles, blocks / card.sm_count)
    met = np.where(attentions.causal, (attentions.keys + block) / 2.0, attentions.keys)
    return np.asarray(fill * block * met * s_per_score)


def attention_bytes(attentions: Attentions) -> Floats:
    """Return bytes of queries and results, keys and values, which pass through memory once."""
    of_queries = attentions.heads * attentions.queries
    of_keys = attentions.key_heads * attentions.keys
    elements = attentions.batch * attentions.head_dim * (of_queries + of_keys)
    return TENSORS * attentions.element_bytes * elements


def together(compute_s: Floats, memory_s: Floats, floor_s: float, law: ProductLaw) -> Floats:
    """Return a kernel's seconds from arithmetic and memory, which overlap in part."""
    p = law.exponent
    return np.asarray(floor_s + (compute_s**p + memory_s**p) ** (1.0 / p))
