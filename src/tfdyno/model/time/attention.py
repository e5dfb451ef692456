"""Seconds of the arithmetic of fused attention, which keeps its scores on the chip.

Blocks of ``block`` queries of one head meet all keys; each score costs its products on the tensor
cores and one exponential on the special function units, one after the other:

    C = sqrt(lone^2 + (blocks / SM)^2) scores (FLOPs / (peak_ratio peak / SM) + 1 / (exp clock))

with blocks = batch heads ceil(queries / block), scores = block keys, or block (keys + block) / 2
under a causal mask, and FLOPs = 4 head_dim a score. The constants and their errors are the rows
``attention`` of ``catalog/data/product_rates.toml``; ``tfdyno-truth products`` fits them to
measured kernels. The backward pass has five products for each two, which reach
``BACKWARD_RATIO`` of that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tfdyno.core.choose.product_rates import ProductRate
from tfdyno.model.time.kernel_time import peak_unit
from tfdyno.model.time.peaks import peak_flops_per_s
from tfdyno.model.time.products import rate_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.product_rates import ProductRates
    from tfdyno.core.choose.program import Kernel

    Floats = NDArray[np.float64]

PRODUCTS = 2.0
"""Products of one head_dim for every score."""
BACKWARD_PRODUCTS = 5.0
"""Of the backward pass, which computes the scores again (FlashAttention-2, arXiv 2307.08691)."""
BACKWARD_RATIO = 63.0 / 73.0
"""What those reach of the peak over what the forward pass does: 63 % and 73 % of an A100's, the
most that FlashAttention-2 was measured to reach (arXiv 2307.08691, unverified (memory)). Not
measured here."""


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


def attention_card(gpu: Gpu, rates: ProductRates, *, clock_ratio: float = 1.0) -> AttentionCard:
    """Look up what the arithmetic needs; the arguments are those of ``products.product_card``."""
    rate = rate_of(gpu, "attention", rates)
    peak = peak_flops_per_s(gpu, peak_unit(gpu, "bf16", tf32_allowed=False))
    return AttentionCard(
        sm_count=gpu.sm_count,
        peak_flops_per_s=peak * (1.0 if rate.measured else clock_ratio),
        clock_hz=gpu.boost_hz * clock_ratio,
        bandwidth_bytes_per_s=gpu.memory_bytes_per_s,
        rate=rate,
    )


def attention_compute_seconds(
    attentions: Attentions, card: AttentionCard, rates: ProductRates
) -> Floats:
    """Return seconds of the forward pass's arithmetic alone: C of the module's first lines."""
    block = rates.attention.block
    s_per_flop = card.sm_count / (card.rate.peak_ratio * card.peak_flops_per_s)
    s_per_score = 2.0 * PRODUCTS * attentions.head_dim * s_per_flop + 1.0 / (
        rates.attention.exp_per_clock * card.clock_hz
    )
    blocks = attentions.batch * attentions.heads * np.ceil(attentions.queries / block)
    fill = np.hypot(rates.law.lone_tiles, blocks / card.sm_count)
    met = np.where(attentions.causal, (attentions.keys + block) / 2.0, attentions.keys)
    return np.asarray(fill * block * met * s_per_score)


def kernel_seconds(
    kernels: Sequence[Kernel], grown: float, gpu: Gpu, rates: ProductRates, clock_ratio: float
) -> Floats:
    """Return seconds of the arithmetic of one launch of each kernel of kind ``attention``.

    Args:
        kernels: Forward and backward passes; their type has 16 bits.
        grown: Batch over that of the program.
        gpu: The card.
        rates: What measured kernels reach.
        clock_ratio: Share of its boost clock that the card holds under load.
    """

    def sizes(name: str) -> Floats:
        return np.array([one.size(name, grown) for one in kernels], dtype=float)

    card = attention_card(gpu, rates, clock_ratio=clock_ratio)
    attentions = Attentions(
        batch=sizes("batch"),
        heads=sizes("heads"),
        key_heads=sizes("key_heads"),
        head_dim=sizes("head_dim"),
        queries=sizes("queries"),
        keys=sizes("keys"),
        causal=sizes("causal") > 0.0,
        element_bytes=np.full(len(kernels), 2.0),
    )
    backward = BACKWARD_PRODUCTS / PRODUCTS / BACKWARD_RATIO
    passes = np.where(sizes("products") > PRODUCTS, backward, 1.0)
    return attention_compute_seconds(attentions, card, rates) * passes
