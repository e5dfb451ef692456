"""model/products: seconds of matrix products, by hand and against measured ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.catalog.gpus import find
from tfdyno.catalog.time_model import product_rates
from tfdyno.core.choose.product_rates import ProductLaw, ProductRate
from tfdyno.model.time.peaks import peak_flops_per_s
from tfdyno.model.time.products import (
    ProductCard,
    Products,
    compute_seconds,
    product_card,
    rate_of,
)

LAW = ProductLaw(tile=64, prologue=0, lone_tiles=3.0, split_s=1e-3, exponent=2.0, source="by hand")
RATE = ProductRate(
    unit="half",
    cards=(),
    measured=False,
    floor_s=1e-6,
    peak_ratio=0.5,
    bandwidth_ratio=0.5,
    median_error_ratio=0.1,
    p90_error_ratio=0.2,
    source="by hand",
)
CARD = ProductCard(sm_count=2, peak_flops_per_s=2e12, rate=RATE)
SIZES = st.integers(1, 20_000)


def products(*shapes: tuple[float, ...]) -> Products:
    """m, n, k and perhaps batch."""
    m, n, k, batch = np.array([(*shape, 1.0)[:4] for shape in shapes]).T
    return Products(m=m, n=n, k=k, batch=batch)


def test_tiles_fill_the_sms_and_a_few_take_as_long_as_one() -> None:
    # 2 x 64 x 64 x 100 FLOPs of a tile at 0.5 x 1e12 FLOP/s of an SM: 1.6384 us.
    found = compute_seconds(products((64, 64, 100), (65, 64, 100), (512, 64, 100)), CARD, LAW)
    fill = [(9 + 0.5**2) ** 0.5, (9 + 1**2) ** 0.5, (9 + 4**2) ** 0.5]
    assert found == pytest.approx(np.array(fill) * 1.6384e-6)


def test_a_long_product_of_one_tile_is_split_where_that_pays() -> None:
    one = products((64, 64, 1_000_000))
    whole = compute_seconds(one, CARD, replace(LAW, split_s=1.0))
    # 64 parts, 32 of them after another on each SM, and what adding them up takes.
    split = compute_seconds(one, CARD, LAW)
    assert whole == pytest.approx((9 + 0.5**2) ** 0.5 * 1.6384e-2)
    assert split == pytest.approx((9 + 32**2) ** 0.5 * 1.6384e-2 / 64 + 1e-3)


@given(SIZES, SIZES, SIZES, st.integers(1, 64))
def test_the_backward_products_follow_the_same_law(m: int, n: int, k: int, batch: int) -> None:
    card = product_card(find("t4"), "fp16_tensor", product_rates())
    law = product_rates().law
    one, other = compute_seconds(products((m, n, k, batch), (n, m, k, batch)), card, law)
    assert one == pytest.approx(other)
    assert one > 2.0 * m * n * k * batch / card.peak_flops_per_s


def test_a_card_that_nobody_measured_gets_the_common_row_and_its_own_peak() -> None:
    rates = product_rates()
    card = product_card(find("rtx-3090"), "fp16_tensor", rates, clock_ratio=0.9)
    assert not card.rate.measured
    assert card.rate.cards == ()
    assert card.peak_flops_per_s == pytest.approx(
        0.9 * peak_flops_per_s(find("rtx-3090"), "fp16_tensor")
    )


def test_a_measured_card_has_its_clock_in_its_rate() -> None:
    card = product_card(find("l40s"), "bf16_tensor", product_rates(), clock_ratio=0.9)
    assert card.rate.measured
    assert card.peak_flops_per_s == peak_flops_per_s(find("l40s"), "bf16_tensor")


def test_a_half_rate_card_of_a_measured_generation_is_not_taken_for_measured() -> None:
    rates = product_rates()
    assert rate_of(find("rtx-6000-ada"), "half", rates).measured
    assert not rate_of(find("rtx-4090"), "half", rates).measured
