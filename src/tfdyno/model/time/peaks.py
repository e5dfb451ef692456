"""Dense peak rates of a GPU, computed from its units and clocks; which precision pays on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from tfdyno.core.choose.hardware import Gpu

Unit = Literal[
    "fp32",
    "fp16_vector",
    "fp64",
    "tf32_tensor",
    "fp16_tensor",
    "bf16_tensor",
    "fp8_tensor",
    "int8_tensor",
]
UNITS: tuple[Unit, ...] = get_args(Unit)
_UNIT_OF_DTYPE: dict[str, Unit] = {
    "f64": "fp64",
    "c128": "fp64",
    "f16": "fp16_tensor",
    "bf16": "bf16_tensor",
    "s8": "int8_tensor",
    "u8": "int8_tensor",
}
FIRST_TF32 = FIRST_BFLOAT16 = 8.0
"""Compute capability from which on tensor cores know the type."""
HALF_RATE_VARIANTS = frozenset({"geforce", "a10g", "l40"})
"""Variants of ``sm_rates.csv`` whose float16 rate halves when they accumulate in float32."""
_FALLBACK: dict[Unit, Unit] = {
    "tf32_tensor": "fp32",
    "fp16_tensor": "fp16_vector",
    "fp16_vector": "fp32",
    "bf16_tensor": "fp32",
    "fp8_tensor": "fp16_tensor",
    "int8_tensor": "fp32",
}


def peak_flops_per_s(gpu: Gpu, unit: Unit) -> float:
    """Return the dense peak of one kind of arithmetic unit; 0.0 where the GPU has none.

        peak = SMs x operations per clock and SM x clock

    Tensor units run at the tensor clock, which Hopper and Blackwell hold below the boost clock.

    Args:
        gpu: A card or a MIG slice.
        unit: Vector units (``fp32``, ``fp16_vector``, ``fp64``) or tensor cores; those with
            float32 accumulation.

    Error:
        Within 3 % of the vendor's figure but for the rows that ``catalog/data/README.md`` lists.
    """
    clock_hz = gpu.tensor_clock_hz if unit.endswith("_tensor") else gpu.boost_hz
    per_clock: float = getattr(gpu.rates, f"{unit}_per_clock")
    return gpu.sm_count * per_clock * clock_hz


def unit_for(gpu: Gpu, dtype: str, *, tf32_allowed: bool) -> Unit:
    """Return the unit that a matrix product or convolution of ``dtype`` runs on.

    Args:
        gpu: A card or a MIG slice.
        dtype: HLO spelling (``f32``, ``f16``, ``bf16``, ``f64``, ``s8``, ``f8e4m3fn`` ...).
        tf32_allowed: Whether float32 products may round their inputs to TF32, as TensorFlow
            lets them by default on compute capability 8.0 and later.

    Returns:
        The fastest unit the card really has: without tensor cores for ``dtype`` its vector unit.
    """
    if dtype in {"f32", "c64"}:
        wanted: Unit = "tf32_tensor" if tf32_allowed else "fp32"
    elif dtype.startswith("f8"):
        wanted = "fp8_tensor"
    else:
        wanted = _UNIT_OF_DTYPE.get(dtype, "fp32")
    while peak_flops_per_s(gpu, wanted) == 0 and wanted in _FALLBACK:
        wanted = _FALLBACK[wanted]
    return wanted


def has_bfloat16(gpu: Gpu) -> bool:
    """Return whether the card computes in bfloat16; XLA makes float32 of it where it does not."""
    return float(gpu.compute_capability) >= FIRST_BFLOAT16


def supports(gpu: Gpu, precision: str) -> tuple[bool, str]:
    """Return whether a Keras precision runs on the GPU, with a warning where it does not pay.

    Args:
        gpu: A card or a MIG slice.
        precision: ``float32``, ``tf32``, ``mixed_float16``, ``mixed_bfloat16``, ``float16``,
            ``bfloat16`` or ``float64``.

    Returns:
        ``(False, reason)`` where the hardware has no such arithmetic; ``(True, warning)`` with an
        empty warning where nothing has to be said.

    Source:
        Operations per clock in ``catalog/data/sm_rates.csv``.
    """
    if precision == "tf32" and not gpu.rates.tf32_tensor_per_clock:
        if float(gpu.compute_capability) < FIRST_TF32:
            return False, f"{gpu.name} has no TF32 (it needs compute capability 8.0 or later)"
        return True, f"{gpu.name}: the rate of its TF32 tensor cores is unknown, FP32 assumed"
    if precision.endswith("bfloat16"):
        return _bfloat16(gpu)
    if precision.endswith("float16"):
        return True, _float16_warning(gpu)
    if precision == "tf32" and gpu.rates.tf32_tensor_per_clock <= gpu.rates.fp32_per_clock:
        return True, f"TF32 is no faster than float32 on {gpu.name} (half-rate tensor cores)"
    if precision == "float64" and gpu.rates.fp64_per_clock < gpu.rates.fp32_per_clock / 4:
        share = round(gpu.rates.fp32_per_clock / max(gpu.rates.fp64_per_clock, 1e-9))
        return True, f"float64 runs at 1/{share} of the float32 rate on {gpu.name}"
    return True, ""


def _bfloat16(gpu: Gpu) -> tuple[bool, str]:
    if not has_bfloat16(gpu):
        return False, f"{gpu.name} has no bfloat16 units (compute capability below 8.0)"
    if not gpu.rates.bf16_tensor_per_clock:
        return True, f"{gpu.name}: the rate of its bfloat16 tensor cores is unknown, FP32 assumed"
    return True, _half_rate(gpu)


def _float16_warning(gpu: Gpu) -> str:
    rates = gpu.rates
    if rates.fp16_tensor_per_clock:
        return _half_rate(gpu)
    if rates.tensor_cores:
        return f"{gpu.name}: the rate of its float16 tensor cores is unknown, vector rate assumed"
    slow = ""
    if not rates.fp16_vector_per_clock:
        slow = " (it has no float16 arithmetic of its own)"
    elif rates.fp16_vector_per_clock < rates.fp32_per_clock:
        share = round(rates.fp32_per_clock / rates.fp16_vector_per_clock)
        slow = f" (its own float16 arithmetic runs at 1/{share} of that)"
    return (
        f"{gpu.name} has no tensor cores: float16 products are computed in float32{slow}, "
        "so float16 saves memory and its traffic only"
    )


def _half_rate(gpu: Gpu) -> str:
    if gpu.rates.variant not in HALF_RATE_VARIANTS:
        return ""
    return f"{gpu.name} runs 16-bit tensor products with float32 accumulation at half rate"
