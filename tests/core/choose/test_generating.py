"""Generating is one call and then many of another; figures worked by hand."""

from __future__ import annotations

from typing import Any

import pytest
from tests.advice import GIB, around, estimate, exactly

from tfdyno.core.choose.generating import ImageGeneration, TextGeneration


def generation(token: dict[str, Any] | None = None, **prefill: Any) -> TextGeneration:
    return TextGeneration(
        gpu="card",
        batch_size=4,
        prompt_tokens=512,
        new_tokens=100,
        prefill=estimate(step_s=around(0.5), **prefill),
        token=estimate(step_s=around(0.02), **(token or {})),
        cache_bytes=1e6,
    )


def images(**denoise: Any) -> ImageGeneration:
    return ImageGeneration(
        gpu="card",
        batch_size=2,
        steps=28,
        guidance=True,
        text=estimate(step_s=around(0.01)),
        denoise=estimate(step_s=around(0.1), **denoise),
        image=estimate(step_s=around(0.05)),
    )


def test_an_image_is_its_prompt_every_step_and_its_pixels() -> None:
    # 0.01 + 28 x 0.1 + 0.05 = 2.86 s; 20 % down and 25 % up
    whole = images().whole_s
    assert whole.best == pytest.approx(2.86)
    assert (whole.low, whole.high) == pytest.approx((0.8 * 2.86, 1.25 * 2.86))
    assert images().images_per_s.best == pytest.approx(2 / 2.86)
    assert images(fits="no", max_batch_size=None).fits == "no"
    assert images(max_batch_size=3).max_batch_size == 3


def test_the_whole_is_the_prefill_and_as_many_tokens_as_are_made() -> None:
    # 0.5 + 100 x 0.02 = 2.5 s; 20 % down and 25 % up, as both may be off the same way
    whole = generation().whole_s
    assert whole.best == pytest.approx(2.5)
    assert (whole.low, whole.high) == pytest.approx((2.0, 3.125))


def test_the_rate_counts_the_new_tokens_of_all_samples() -> None:
    rate = generation().new_tokens_per_s
    assert rate.best == pytest.approx(4 * 100 / 2.5)
    assert rate.low == pytest.approx(4 * 100 / 3.125)


def test_the_card_has_to_hold_the_larger_of_the_two_calls() -> None:
    larger = generation({"device_memory_bytes": exactly(30 * GIB)})
    assert larger.device_memory_bytes == exactly(30 * GIB)
    assert generation().device_memory_bytes == exactly(10 * GIB)


@pytest.mark.parametrize(
    ("prefill", "token", "both"),
    [("yes", "yes", "yes"), ("yes", "no", "no"), ("may not", "unverified", "may not"),
     ("unverified", "yes", "unverified")],
)  # fmt: skip
def test_it_fits_as_surely_as_the_call_that_fits_less(prefill: str, token: str, both: str) -> None:
    assert generation({"fits": token}, fits=prefill).fits == both


def test_the_largest_batch_is_that_of_both_calls_and_unknown_where_one_is() -> None:
    assert generation({"max_batch_size": 7}, max_batch_size=9).max_batch_size == 7
    assert generation({"max_batch_size": None}, max_batch_size=9).max_batch_size is None
