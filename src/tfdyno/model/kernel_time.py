"""Seconds per unit of work for every class of kernel on every card: the physics of the time model.

A kernel takes ``launch + FLOPs * s_per_flop + bytes * s_per_byte`` (the sum described the measured
steps better than a maximum). The rates follow from the card's data sheet and from global constants;
no constant belongs to one card. Formulas: docs/explanation of the cost model; constants and where
they come from: ``catalog/data/time_model.toml``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.model.kernel_table import LIBRARY_KINDS
from tfdyno.model.peaks import peak_flops_per_s, unit_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tfdyno.core.hardware import Gpu
    from tfdyno.core.time_model import Constants
    from tfdyno.model.kernel_table import CostClass

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

DTYPES = ("f32", "f16", "bf16", "f64", "s8")
"""Element types with a rate of their own; any other counts as f32."""
UNITS = ("cuda", "tf32", "half")
"""What multiplies: CUDA cores, or tensor cores in TF32 or in 16 bits and below."""
TENSOR_FLOPS_PER_CLOCK = 512.0
"""FLOPs per clock and SM at which ``tensor_feed`` leaves the attained share as it is."""
EFFICIENCY = {
    "loop": "e_loop",
    "reduce": "e_reduce",
    "transpose": "e_transpose",
    "copy": "e_transpose",
    "window": "e_window",
    "gather": "e_gather",
    "scatter": "e_scatter",
    "sort": "e_sort",
    "scan": "e_scan",
}
"""Constant that says which share of the memory bandwidth a kind of fusion reaches."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Targets:
    """Cards with a precision setting each; arrays of shape (targets,) and (targets, dtypes)."""

    bandwidth_bytes_per_s: Floats
    cuda_flops_per_s: Floats
    """float32 on CUDA cores."""
    peak_flops_per_s: Floats
    """Dense peak of the unit that multiplies each dtype."""
    tensor_per_clock: Floats
    """FLOPs per clock and SM of the tensor cores by dtype; the reference where none is used."""
    unit: Indices
    """Index into ``UNITS`` for each dtype."""

    def __len__(self) -> int:
        """Number of targets."""
        return len(self.bandwidth_bytes_per_s)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rates:
    """Cost per unit of work, shape (targets, classes), for a program compiled by XLA."""

    s_per_flop: Floats
    s_per_byte: Floats
    s_per_extra_byte: Floats


def targets(cards: Sequence[tuple[Gpu, bool]], sustained: Mapping[str, float]) -> Targets:
    """Look up what the arithmetic needs.

    Args:
        cards: Cards, each with a flag that says whether f32 may use TF32.
        sustained: Slug -> share of the boost clock that the card holds under load, for cards that
            are known not to hold it.
    """
    clock = np.array([sustained.get(gpu.slug.split(":")[0], 1.0) for gpu, _ in cards])
    rows = [[unit_of(gpu, dtype, tf32_allowed=tf32) for dtype in DTYPES] for gpu, tf32 in cards]
    return Targets(
        bandwidth_bytes_per_s=np.array([gpu.memory_bytes_per_s for gpu, _ in cards]),
        cuda_flops_per_s=clock * np.array([peak_flops_per_s(gpu, "fp32") for gpu, _ in cards]),
        peak_flops_per_s=clock[:, None] * np.array([[peak for _, peak in row] for row in rows]),
        tensor_per_clock=np.array(
            [
                [
                    TENSOR_FLOPS_PER_CLOCK
                    if name == "cuda"
                    else peak / (gpu.sm_count * gpu.tensor_clock_hz)
                    for name, peak in row
                ]
                for (gpu, _), row in zip(cards, rows, strict=True)
            ]
        ),
        unit=np.array([[UNITS.index(name) for name, _ in row] for row in rows], dtype=np.intp),
    )


def unit_of(gpu: Gpu, dtype: str, *, tf32_allowed: bool) -> tuple[str, float]:
    """Unit that multiplies a dtype on a card and its dense peak in FLOP/s.

    A 16-bit type without tensor cores is computed in float32 on CUDA cores, as cuDNN and cuBLAS do
    on cards before 7.0: half is then only a storage format.
    """
    unit = unit_for(gpu, dtype, tf32_allowed=tf32_allowed)
    peak = peak_flops_per_s(gpu, unit)
    if unit in ("fp16_tensor", "bf16_tensor", "fp8_tensor", "int8_tensor") and peak:
        return "half", peak
    if unit == "tf32_tensor":
        return "tf32", peak
    if unit == "fp64" and peak:
        return "cuda", peak
    return "cuda", peak_flops_per_s(gpu, "fp32")


def rates(classes: Sequence[CostClass], cards: Targets, constants: Constants) -> Rates:
    """Price every class on every card (see the module's first lines)."""
    library = np.array([c.kind in LIBRARY_KINDS for c in classes])
    efficiency = np.array([_memory_efficiency(c, constants) for c in classes])
    s_per_byte = 1.0 / (cards.bandwidth_bytes_per_s[:, None] * efficiency)
    return Rates(
        s_per_flop=np.where(library, 1.0 / _flops_per_s(classes, cards, constants), 0.0),
        s_per_byte=s_per_byte,
        s_per_extra_byte=np.where(library, 0.0, s_per_byte * constants["window_overlap"]),
    )


def _memory_efficiency(cost_class: CostClass, constants: Constants) -> float:
    if cost_class.shape == "depthwise":
        return constants["e_depthwise"]
    if cost_class.kind in LIBRARY_KINDS:
        return constants["e_library"]
    return constants[EFFICIENCY.get(cost_class.kind, "e_loop")]


def _flops_per_s(classes: Sequence[CostClass], cards: Targets, constants: Constants) -> Floats:
    """Attained FLOP/s, shape (targets, classes)."""
    column = [DTYPES.index(c.dtype) if c.dtype in DTYPES else 0 for c in classes]
    unit = cards.unit[:, column]
    factor = np.array([[_unit_factor(name, c, constants) for c in classes] for name in UNITS])
    feed = (cards.tensor_per_clock / TENSOR_FLOPS_PER_CLOCK) ** -constants["tensor_feed"]
    peak = (cards.peak_flops_per_s * feed)[:, column]
    attained = peak * factor[unit, np.arange(len(classes))]
    cuda = cards.cuda_flops_per_s[:, None]
    winograd = np.array([_winograd_factor(c, constants) for c in classes])
    attained = np.where(
        unit <= UNITS.index("tf32"), np.maximum(attained, cuda * winograd), attained
    )
    depthwise = np.array([c.shape == "depthwise" for c in classes])
    return np.where(depthwise, cuda * constants["u_depthwise"], attained)


def _unit_factor(unit: str, cost_class: CostClass, constants: Constants) -> float:
    """Share of a unit's peak that a class of library kernel attains."""
    factor = constants[f"u_{unit}"]
    if cost_class.kind == "gemm":
        return factor * constants["d_gemm_cuda" if unit == "cuda" else "d_gemm_tensor"]
    factor *= _direction_factor(cost_class, constants)
    if cost_class.shape == "grouped":
        factor *= constants["u_grouped"]
    if cost_class.shape == "volume":
        factor *= constants["u_volume"]
    if cost_class.shape == "narrow" and unit != "cuda":
        factor *= constants["u_narrow"]
    return factor


def _winograd_factor(cost_class: CostClass, constants: Constants) -> float:
    """Effective share of the CUDA cores' peak where cuDNN can save multiplications; else 0."""
    if not cost_class.shape.startswith("winograd"):
        return 0.0
    gain = constants[cost_class.shape]
    return constants["u_cuda"] * gain * _direction_factor(cost_class, constants)


def _direction_factor(cost_class: CostClass, constants: Constants) -> float:
    name = {"input_gradient": "d_input_gradient", "weight_gradient": "d_weight_gradient"}
    return constants[name[cost_class.direction]] if cost_class.direction in name else 1.0
