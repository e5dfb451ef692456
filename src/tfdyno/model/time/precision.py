"""What a precision means on a card: which unit computes, and what the user should be told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.model.time.kernel_time import unit_of
from tfdyno.model.time.peaks import supports

if TYPE_CHECKING:
    from tfdyno.core.choose.hardware import Gpu

DTYPE = {
    "float32": "f32",
    "tf32": "f32",
    "mixed_float16": "f16",
    "float16": "f16",
    "mixed_bfloat16": "bf16",
    "bfloat16": "bf16",
    "float64": "f64",
}
"""Element type that does most of the arithmetic under a Keras policy."""
WEIGHT_BYTES = {"float16": 2.0, "bfloat16": 2.0, "float64": 8.0}
"""Bytes per weight of the policies that do not keep weights in float32."""


def is_single(precision: str) -> bool:
    """Return whether weights and activations are float32 alike; an empty name is float32's."""
    return precision in ("", "float32", "tf32")


def tf32_allowed(precision: str) -> bool:
    """Return whether float32 products may use TF32: unless strict float32 was asked for by name."""
    return precision != "float32"


def peak_flops_per_s(gpu: Gpu, precision: str, policy: str) -> float:
    """Return the dense peak of the unit that the precision uses on the card, FLOP/s."""
    dtype = DTYPE.get(precision or policy, "f32")
    return unit_of(gpu, dtype, tf32_allowed=tf32_allowed(precision))[1]


def gradient_bytes(parameters: int, policy: str) -> float:
    """Return bytes of one replica's gradients: they have the type of the weights."""
    return parameters * WEIGHT_BYTES.get(policy, 4.0)


def precision_warnings(gpu: Gpu, precision: str, policy: str) -> tuple[str, ...]:
    """Return sentences for a precision that the card lacks or that slows it down."""
    runs, warning = supports(gpu, precision or policy)
    if runs:
        return (f"{warning}.",) if warning else ()
    return (f"{warning}: priced at the rate of float32.",)
