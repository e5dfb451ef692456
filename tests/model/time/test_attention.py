"""Fused attention, priced by hand: its scores, its backward pass, as kernels of a program."""

from __future__ import annotations

import numpy as np
import pytest
from tests.model.steps import program

from tfdyno.catalog.gpus import all_gpus, find
from tfdyno.catalog.time_model import product_rates
from tfdyno.core.base.interval import Scaled
from tfdyno.core.choose.program import Kernel
from tfdyno.model.time.attention import (
    BACKWARD_RATIO,
    AttentionCard,
    Attentions,
    attention_card,
    attention_compute_seconds,
    kernel_seconds,
)
from tfdyno.model.time.kernel_law import compute_constants, work_of
from tfdyno.model.time.parts import memory_constant


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
    return attention_card(find(slug), product_rates())


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


def kernel(products: int = 2, batch: int = 4, *, causal: bool = False) -> Kernel:
    dims = {"batch": batch, "heads": 16, "key_heads": 16, "head_dim": 64, "queries": 1024}
    more = {"keys": 1024, "causal": int(causal), "products": products}
    return Kernel(
        kind="attention",
        dtype="bf16",
        flops=Scaled(per_sample=2.0 * products * 16 * 1024**2 * 64),
        dims={name: (size,) for name, size in (dims | more).items()},
        dims_scaled=("batch",),
    )


def test_a_kernel_takes_what_its_sizes_take_at_the_batch_that_is_asked() -> None:
    rates, gpu = product_rates(), find("h100-sxm5-80gb")
    (found,) = kernel_seconds([kernel(batch=2)], 2.0, gpu, rates, 1.0)
    (by_hand,) = attention_compute_seconds(attentions(4, 16, 1024, 64), card_of(gpu.slug), rates)
    assert found == pytest.approx(by_hand)


def test_the_backward_pass_has_five_products_for_two_and_reaches_less() -> None:
    gpu = find("a100-sxm4-80gb")
    forward, backward = kernel_seconds([kernel(), kernel(5)], 1.0, gpu, product_rates(), 1.0)
    assert backward / forward == pytest.approx(2.5 / BACKWARD_RATIO)
    assert pytest.approx(0.863, abs=0.001) == BACKWARD_RATIO


def test_every_card_of_the_catalogue_takes_a_finite_time() -> None:
    """Also the one whose data sheet tells no rate of its tensor cores."""
    for gpu in all_gpus():
        found = kernel_seconds([kernel(), kernel(5)], 1.0, gpu, product_rates(), 1.0)
        assert np.all(np.isfinite(found) & (found > 0.0)), gpu.slug


def test_a_program_prices_it_by_no_constant_of_other_kernels() -> None:
    gpu = find("h100-sxm5-80gb")
    made = program(kernel(causal=True))
    found = work_of(made, made.batch_size, gpu, tf32_allowed=True, rates=product_rates())
    expected = kernel_seconds([kernel(causal=True)], 1.0, gpu, product_rates(), 1.0)
    assert found.compute_s == pytest.approx(expected)
    (law_class,) = found.classes
    assert compute_constants(law_class) == ()
    assert memory_constant(law_class.cost) == "e_library"
