"""attention: seconds of fused attention, by hand and against measured kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tfdyno.catalog.gpus import find
from tfdyno.catalog.time_model import product_rates
from tfdyno.model.time.peaks import peak_flops_per_s
from tfdyno.model.time.products import rate_of
from tfdyno_truth.attention import (
    AttentionCard,
    Attentions,
    attention_bytes,
    attention_compute_seconds,
    attention_seconds,
)


def attentions(
    batch: int, heads: int, length: int, head_dim: int, *, causal: bool = False, key_heads: int = 0
) -> Attentions:
    def one(value: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.array([float(value)])

    return Attentions(
        batch=one(batch),
        heads=one(heads),
        key_heads=one(key_heads or heads),
        head_dim=one(head_dim),
        queries=one(length),
        keys=one(length),
        causal=np.array([causal]),
        element_bytes=one(2),
    )


def card_of(slug: str) -> AttentionCard:
    gpu = find(slug)
    return AttentionCard(
        sm_count=gpu.sm_count,
        peak_flops_per_s=peak_flops_per_s(gpu, "bf16_tensor"),
        clock_hz=gpu.boost_hz,
        bandwidth_bytes_per_s=gpu.memory_bytes_per_s,
        rate=rate_of(gpu, "attention", product_rates()),
    )


def test_scores_cost_their_products_and_one_exponential_each() -> None:
    # H100: 4 x 16 x 1024^2 scores of 4 x 64 FLOPs; at 0.838 of 7.495e12 FLOP/s of an SM 40.8 ps,
    # and 16 exponentials per clock of 1.98 GHz 31.6 ps: 72.3 ps; 512 blocks on 132 SMs.
    rates, card = product_rates(), card_of("h100-sxm5-80gb")
    found = attention_compute_seconds(attentions(4, 16, 1024, 64), card, rates)
    fill = (1.25**2 + (4 * 16 * 8 / 132) ** 2) ** 0.5
    assert found == pytest.approx([fill * 128 * 1024 * 72.3e-12], rel=0.01)


def test_a_causal_mask_saves_less_than_half() -> None:
    rates, card = product_rates(), card_of("h100-sxm5-80gb")
    whole = attention_compute_seconds(attentions(1, 16, 1024, 64), card, rates)
    causal = attention_compute_seconds(attentions(1, 16, 1024, 64, causal=True), card, rates)
    # Blocks on the diagonal are computed whole: (1024 + 128) / 2 of 1024 keys.
    assert causal / whole == pytest.approx([0.5625])


def test_a_short_sequence_takes_as_long_as_one_block() -> None:
    rates, card = product_rates(), card_of("a100-sxm4-80gb")
    few, full = (
        attention_compute_seconds(attentions(1, 1, length, 64, causal=True), card, rates)
        for length in (1, 128)
    )
    assert few / full == pytest.approx([(1 + 128) / (128 + 128)])


def test_bytes_are_queries_results_keys_and_values() -> None:
    # 2 bytes x 3 x 100 x 64 x (2 x 8 + 2 x 2) heads.
    assert attention_bytes(attentions(3, 8, 100, 64, key_heads=2)) == 2 * 3 * 100 * 64 * 20


@pytest.mark.parametrize(
    ("gpu", "attention", "measured_s"),
    [
        # Medians of NVIDIA aiconfigurator's measurements in bf16 (truth/published).
        ("a100-sxm4-80gb", attentions(8, 24, 6144, 128, causal=True), 11.55e-3),
        ("h100-sxm5-80gb", attentions(8, 16, 8192, 64, causal=True), 2.688e-3),
        ("b200-sxm-180gb", attentions(8, 96, 8192, 128, causal=True), 13.0e-3),
        ("l40s", attentions(8, 32, 8192, 128, causal=True), 28.65e-3),
    ],
)
def test_measured_attention_of_long_sequences_is_met(
    gpu: str, attention: Attentions, measured_s: float
) -> None:
    card = card_of(gpu)
    (found,) = attention_seconds(attention, card, product_rates())
    assert found == pytest.approx(measured_s, rel=2 * card.rate.median_error_ratio)
