"""A precision is priced by the unit that really computes it, and says so where it does not pay."""

from __future__ import annotations

import pytest

from tfdyno.catalog import gpus
from tfdyno.core.base.settings import PRECISIONS
from tfdyno.model.time import precision


@pytest.mark.parametrize(
    ("gpu", "asked", "policy", "tera"),
    [
        # SMs x operations per clock x clock, worked by hand
        ("a100-sxm4-80gb", "float32", "float32", 19.5),  # strict: 108 x 128 x 1.410 GHz
        ("a100-sxm4-80gb", "", "float32", 155.9),  # unasked, TF32: 108 x 1024 x 1.410
        ("a100-sxm4-80gb", "tf32", "float32", 155.9),
        ("a100-sxm4-80gb", "mixed_bfloat16", "float32", 311.9),  # 108 x 2048 x 1.410
        ("a100-sxm4-80gb", "", "mixed_float16", 311.9),  # the script's own policy
        ("a100-sxm4-80gb", "float32", "mixed_float16", 19.5),  # what is asked goes first
        ("v100-sxm2-16gb", "", "float32", 15.7),  # no TF32: 80 x 128 x 1.530
        ("t4", "mixed_bfloat16", "float32", 8.1),  # no bfloat16: 40 x 128 x 1.590
    ],
)
def test_the_peak_is_that_of_the_unit_that_computes(
    gpu: str, asked: str, policy: str, tera: float
) -> None:
    found = precision.peak_flops_per_s(gpus.find(gpu), asked, policy)
    assert found / 1e12 == pytest.approx(tera, abs=0.06)


def test_only_float32_by_name_forbids_tf32() -> None:
    assert [name for name in ("", *PRECISIONS) if not precision.tf32_allowed(name)] == ["float32"]


def test_only_float32_keeps_weights_and_activations_alike_in_32_bits() -> None:
    single = [name for name in ("", *PRECISIONS) if precision.is_single(name)]
    assert single == ["", "float32", "tf32"]


def test_every_precision_that_can_be_asked_for_has_an_element_type() -> None:
    assert set(PRECISIONS) <= set(precision.DTYPE)


@pytest.mark.parametrize(
    ("policy", "size_bytes"),
    [
        ("float32", 4e6), ("mixed_float16", 4e6), ("mixed_bfloat16", 4e6),  # weights in float32
        ("float16", 2e6), ("bfloat16", 2e6), ("float64", 8e6),
    ],
)  # fmt: skip
def test_gradients_have_the_type_of_the_weights(policy: str, size_bytes: float) -> None:
    assert precision.gradient_bytes(1_000_000, policy) == size_bytes


def test_a_precision_that_the_card_lacks_is_priced_as_float32_and_says_so() -> None:
    (warning,) = precision.precision_warnings(gpus.find("t4"), "mixed_bfloat16", "float32")
    assert warning == (
        "Tesla T4 has no bfloat16 units (compute capability below 8.0): "
        "priced at the rate of float32."
    )


def test_a_precision_that_does_not_pay_is_one_sentence() -> None:
    (warning,) = precision.precision_warnings(gpus.find("gtx-1080-ti"), "", "mixed_float16")
    assert warning.startswith("GeForce GTX 1080 Ti has no tensor cores")
    assert warning.endswith("so float16 saves memory and its traffic only.")


def test_a_precision_that_pays_needs_no_words() -> None:
    assert precision.precision_warnings(gpus.find("a100-sxm4-80gb"), "", "mixed_bfloat16") == ()
