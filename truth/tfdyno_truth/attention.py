"""Seconds of whole kernels of fused attention, as the benchmark of the measured ones saw them.

    t = floor + (C^p + M^p)^(1/p)
    M = (queries and results + keys and values) bytes / (bandwidth_ratio bandwidth)

C is ``tfdyno.model.time.attention``'s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tfdyno.model.time.attention import attention_compute_seconds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tfdyno.core.choose.product_rates import ProductLaw, ProductRates
    from tfdyno.model.time.attention import AttentionCard, Attentions

    Floats = NDArray[np.float64]

TENSORS = 2.0
"""Tensors as large as the queries that pass through memory, and as many as large as the keys."""


def attention_seconds(attentions: Attentions, card: AttentionCard, rates: ProductRates) -> Floats:
    """Return seconds of every attention on the GPU, launching from the host not counted."""
    compute_s = attention_compute_seconds(attentions, card, rates)
    bandwidth = card.rate.bandwidth_ratio * card.bandwidth_bytes_per_s
    memory_s = attention_bytes(attentions) / bandwidth
    return together(compute_s, memory_s, card.rate.floor_s, rates.law)


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
