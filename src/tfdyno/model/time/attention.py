"""Seconds of fused attention, which keeps its scores on the chip, from what measured kernels reach.

Blocks of ``block`` queries of one head meet all keys; each score costs its products on the tensor
cores and one exponential on the special function units, one after the other:

    t = floor + (C^p + M^p)^(1/p)
    C = sqrt(lone^2 + (blocks / SM)^2) scores (FLOPs / (peak_ratio peak / SM) + 1 / (exp clock))
    M = (queries and results + keys and values) bytes / (bandwidth_ratio bandwidth)

with blocks = batch heads ceil(queries / block), scores = block keys, or block (keys + block) / 2
under a causal mask, and FLOPs = 4 head_dim a score. The backward pass has five products where the
forward pass has two, and computes the scores again (Dao, "FlashAttention-2", arXiv 2307.08691,
section 3.1); no measured kernel of it stands behind the constants. They, and their errors, are the
rows ``attention`` of ``catalog/data/product_rates.toml``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tfdyno.core.choose.product_rates import ProductRate
from tfdyno.model.time.peaks import peak_flops_per_s
from tfdyno.model.time.products import rate_of, together

if TYPE_CHECKING:
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.product_rates import ProductRates
    from tfdyno.model.time.peaks import Unit

    Floats = NDArray[np.float64]

FORWARD_PRODUCTS, BACKWARD_PRODUCTS = 2.0, 5.0
"""Products of one head_dim for every score."""
FORWARD_TENSORS, BACKWARD_TENSORS = 2.0, 4.0
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
        return 2.0 * FORWARD_PRODUCTS * self.head_dim * self.scores


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionCard:
    """One card as fused attention sees it."""

    sm_count: int
    peak_flops_per_s: float
    clock_hz: float
    """The clock of the special function units."""
    bandwidth_bytes_per_s: float
    rate: ProductRate


def attention_card(gpu: Gpu, unit: Unit, rates: ProductRates) -> AttentionCard:
    """Look up what the arithmetic needs; ``unit`` multiplies the type of the queries."""
    return AttentionCard(
        sm_count=gpu.sm_count,
        peak_flops_per_s=peak_flops_per_s(gpu, unit),
        clock_hz=gpu.boost_hz,
        bandwidth_bytes_per_s=gpu.memory_bytes_per_s,
        rate=rate_of(gpu, "attention", rates),
    )


def attention_seconds(
    attentions: Attentions, card: AttentionCard, rates: ProductRates, *, backward: bool = False
) -> Floats:
    """Return seconds of every attention on the GPU, launching from the host not counted.

    Args:
        attentions: What is computed.
        card: From ``attention_card``.
        rates: What measured kernels reach.
        backward: The backward pass instead of the forward one.
    """
    compute_s = attention_compute_seconds(attentions, card, rates, backward=backward)
    tensors = BACKWARD_TENSORS if backward else FORWARD_TENSORS
    memory_s = attention_bytes(attentions, tensors) / (
        card.rate.bandwidth_ratio * card.bandwidth_bytes_per_s
    )
    return together(compute_s, memory_s, card.rate.floor_s, rates.law)


def attention_compute_seconds(
    attentions: Attentions, card: AttentionCard, rates: ProductRates, *, backward: bool = False
) -> Floats:
    """Return seconds of the arithmetic alone: C of the module's first lines."""
    block = rates.attention.block
    products = BACKWARD_PRODUCTS if backward else FORWARD_PRODUCTS
    s_per_flop = card.sm_count / (card.rate.peak_ratio * card.peak_flops_per_s)
    s_per_score = 2.0 * products * attentions.head_dim * s_per_flop + 1.0 / (
        rates.attention.exp_per_clock * card.clock_hz
    )
    blocks = attentions.batch * attentions.heads * np.ceil(attentions.queries / block)
    fill = np.hypot(rates.law.lone_tiles, blocks / card.sm_count)
    met = np.where(attentions.causal, (attentions.keys + block) / 2.0, attentions.keys)
    return np.asarray(fill * block * met * s_per_score)


def attention_bytes(attentions: Attentions, tensors: float = FORWARD_TENSORS) -> Floats:
    """Return bytes of queries and results, keys and values, which pass through memory once."""
    of_queries = attentions.heads * attentions.queries
    of_keys = attentions.key_heads * attentions.keys
    elements = attentions.batch * attentions.head_dim * (of_queries + of_keys)
    return tensors * attentions.element_bytes * elements
