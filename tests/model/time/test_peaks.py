from __future__ import annotations

import pytest

from tfdyno.catalog import gpus
from tfdyno.model.time import peaks


@pytest.mark.parametrize(
    ("gpu", "unit", "tera"),
    [
        # SMs x operations per clock x clock, worked by hand
        ("a100-sxm4-80gb", "fp16_tensor", 311.9),  # 108 x 2048 x 1.410 GHz
        ("a100-sxm4-80gb", "tf32_tensor", 155.9),  # 108 x 1024 x 1.410
        ("a100-sxm4-80gb", "fp32", 19.5),  # 108 x 128 x 1.410
        ("h100-sxm5-80gb", "fp32", 66.9),  # 132 x 256 x 1.980
        ("h100-sxm5-80gb", "fp16_tensor", 989.4),  # 132 x 4096 x 1.830: the tensor clock
        ("h100-pcie-80gb", "fp16_tensor", 756.5),  # 114 x 4096 x 1.620
        ("rtx-4090", "fp16_tensor", 165.2),  # 128 x 512 x 2.520: half rate
        ("rtx-4090", "tf32_tensor", 82.6),  # no more than FP32
        ("l40", "fp16_tensor", 181.0),  # 142 x 512 x 2.490: half, unlike the L40S
        ("l40s", "fp16_tensor", 366.4),
        ("a10g", "int8_tensor", 140.1),  # 80 x 1024 x 1.710: INT8 halved too
        ("gtx-1080-ti", "fp16_tensor", 0.0),
        ("gtx-1660-ti", "fp16_tensor", 0.0),
        ("t4", "bf16_tensor", 0.0),
    ],
)
def test_peak_is_sms_times_operations_times_clock(gpu: str, unit: peaks.Unit, tera: float) -> None:
    found = peaks.peak_flops_per_s(gpus.find(gpu), unit)
    assert found / 1e12 == pytest.approx(tera, abs=0.06)


@pytest.mark.parametrize(
    ("gpu", "dtype", "tf32_allowed", "unit"),
    [
        ("a100-sxm4-80gb", "f32", True, "tf32_tensor"),
        ("a100-sxm4-80gb", "f32", False, "fp32"),
        ("v100-sxm2-16gb", "f32", True, "fp32"),
        ("v100-sxm2-16gb", "f16", True, "fp16_tensor"),
        ("v100-sxm2-16gb", "bf16", True, "fp32"),
        ("p100-sxm2-16gb", "f16", True, "fp16_vector"),
        ("k80", "f16", True, "fp32"),
        ("h100-sxm5-80gb", "f8e4m3fn", True, "fp8_tensor"),
        ("a100-sxm4-80gb", "f8e4m3fn", True, "fp16_tensor"),
        ("a100-sxm4-80gb", "f64", True, "fp64"),
    ],
)
def test_a_dtype_runs_on_the_fastest_unit_the_card_has(
    gpu: str, dtype: str, tf32_allowed: bool, unit: str
) -> None:
    assert peaks.unit_for(gpus.find(gpu), dtype, tf32_allowed=tf32_allowed) == unit


@pytest.mark.parametrize(
    ("gpu", "precision", "runs", "words"),
    [
        ("gtx-1080-ti", "mixed_float16", True, "1/64"),
        ("k80", "mixed_float16", True, "no float16 arithmetic of its own"),
        ("gtx-1660-ti", "mixed_float16", True, "no tensor cores"),
        ("p100-sxm2-16gb", "mixed_float16", True, "no tensor cores"),
        ("rtx-2080-ti", "mixed_float16", True, "half rate"),
        ("rtx-4090", "mixed_bfloat16", True, "half rate"),
        ("rtx-4090", "tf32", True, "no faster"),
        ("l40", "mixed_float16", True, "half rate"),
        ("t4", "mixed_bfloat16", False, "no bfloat16"),
        ("t4", "tf32", False, "no TF32"),
        ("gb10", "mixed_float16", True, "unknown"),
        ("rtx-3090", "float64", True, "1/64"),
    ],
)
def test_where_a_precision_does_not_pay_a_warning_says_so(
    gpu: str, precision: str, runs: bool, words: str
) -> None:
    found, warning = peaks.supports(gpus.find(gpu), precision)
    assert found is runs
    assert words in warning


@pytest.mark.parametrize("gpu", ["a100-sxm4-80gb", "h100-sxm5-80gb", "l40s", "rtx-a6000"])
def test_full_rate_cards_get_no_warning(gpu: str) -> None:
    for precision in ("float32", "tf32", "mixed_float16", "mixed_bfloat16"):
        assert peaks.supports(gpus.find(gpu), precision) == (True, "")
