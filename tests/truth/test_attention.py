"""attention: seconds of whole kernels, by hand and against measured ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.model.time.test_attention import attentions, card_of

from tfdyno.catalog.time_model import product_rates
from tfdyno_truth.attention import attention_bytes, attention_seconds

if TYPE_CHECKING:
    from tfdyno.model.time.attention import Attentions


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
