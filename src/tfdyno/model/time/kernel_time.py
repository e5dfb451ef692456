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

from tfdyno.model.time.kernel_table import LIBRARY_KINDS
from tfdyno.model.time.parts import (
    TENSOR_FLOPS_PER_CLOCK,
    TENSOR_UNITS,
    Route,
    compute_routes,
    memory_parts,
    overlap_parts,
    product,
)
from tfdyno.model.time.peaks import peak_flops_per_s, unit_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.time_model import Constants
    from tfdyno.model.time.kernel_table import CostClass
    from tfdyno.model.time.peaks import Unit

    Booleans = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

DTYPES = ("f32", "f16", "bf16", "f64", "s8")
"""Element types with a rate of their own; any other counts as f32."""
UNITS = ("cuda", "shared", "double", "tf32", "half")
"""What multiplies: CUDA cores (``shared``: those before compute capability 7.0, with which integer
arithmetic takes turns), units of float64, or tensor cores in TF32 or in 16 bits and below."""
FIRST_WITH_INTEGER_UNITS = 7.0
"""NVIDIA's Volta white paper, "Independent integer and floating-point datapaths"."""


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
        """Return the number of targets."""
        return len(self.bandwidth_bytes_per_s)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rates:
    """Cost per unit of work, shape (targets, classes), for a program compiled by XLA."""

    s_per_flop: Floats
    s_per_byte: Floats
    s_per_extra_byte: Floats
    tensor_cores: Booleans
    """Where they do the arithmetic in 16 bits or below."""


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
                    if name not in TENSOR_UNITS
                    else peak / (gpu.sm_count * gpu.tensor_clock_hz)
                    for name, peak in row
                ]
                for (gpu, _), row in zip(cards, rows, strict=True)
            ]
        ),
        unit=np.array([[UNITS.index(name) for name, _ in row] for row in rows], dtype=np.intp),
    )


def unit_of(gpu: Gpu, dtype: str, *, tf32_allowed: bool) -> tuple[str, float]:
    """Return the unit that multiplies a dtype on a card and its dense peak in FLOP/s.

    A 16-bit type without tensor cores is computed in float32 on CUDA cores, as cuDNN and cuBLAS do
    on cards before 7.0: half is then only a storage format.
    """
    unit = peak_unit(gpu, dtype, tf32_allowed=tf32_allowed)
    name = {"fp32": "cuda", "fp64": "double", "tf32_tensor": "tf32"}.get(unit, "half")
    if name == "cuda" and float(gpu.compute_capability) < FIRST_WITH_INTEGER_UNITS:
        name = "shared"
    return name, peak_flops_per_s(gpu, unit)


def peak_unit(gpu: Gpu, dtype: str, *, tf32_allowed: bool) -> Unit:
    """Return the unit of ``unit_of`` as the data sheet names it."""
    unit = unit_for(gpu, dtype, tf32_allowed=tf32_allowed)
    if unit == "tf32_tensor" or (unit != "fp16_vector" and peak_flops_per_s(gpu, unit)):
        return unit
    return "fp32"


def rates(classes: Sequence[CostClass], cards: Targets, constants: Constants) -> Rates:
    """Price every class on every card (see the module's first lines)."""
    attained = np.array([product(memory_parts(c, constants)) for c in classes])
    again = np.array([product(overlap_parts(c, constants)) for c in classes])
    s_per_byte = 1.0 / (cards.bandwidth_bytes_per_s[:, None] * attained)
    s_per_flop = np.zeros((len(cards), len(classes)))
    for index, cost_class in enumerate(classes):
        if cost_class.kind in LIBRARY_KINDS:
            s_per_flop[:, index] = 1.0 / _flops_per_s(cost_class, cards, constants)
    return Rates(
        s_per_flop=s_per_flop,
        s_per_byte=s_per_byte,
        s_per_extra_byte=s_per_byte * again,
        tensor_cores=np.stack([on_tensor_cores(c, cards) for c in classes], axis=-1),
    )


def on_tensor_cores(cost_class: CostClass, cards: Targets) -> Booleans:
    """Mark targets that do the arithmetic of a class in 16 bits or below."""
    half = cards.unit[:, _column(cost_class)] == UNITS.index("half")
    return np.asarray(half & (cost_class.kind in LIBRARY_KINDS))


def route_of(
    cost_class: CostClass, cards: Targets, constants: Constants
) -> tuple[Route, float] | None:
    """Return how the first target does a class's arithmetic, and the peak that this starts from.

    None where the kernel is priced by its bytes alone.
    """
    column = _column(cost_class)
    unit = UNITS[int(cards.unit[0, column])]
    routes = compute_routes(cost_class, unit, float(cards.tensor_per_clock[0, column]), constants)
    peaks = {
        "unit": float(cards.peak_flops_per_s[0, column]),
        "cuda": float(cards.cuda_flops_per_s[0]),
    }
    found = [(route, peaks[route.peak]) for route in routes]
    return max(found, key=lambda one: one[1] * float(product(one[0].parts)), default=None)


def _flops_per_s(cost_class: CostClass, cards: Targets, constants: Constants) -> Floats:
    """Return FLOP/s that a class attains on every target by its fastest route."""
    column = _column(cost_class)
    peaks = {"unit": cards.peak_flops_per_s[:, column], "cuda": cards.cuda_flops_per_s}
    found = np.zeros(len(cards))
    for number, unit in enumerate(UNITS):
        here = cards.unit[:, column] == number
        if not here.any():
            continue
        routes = compute_routes(cost_class, unit, cards.tensor_per_clock[:, column], constants)
        attained = [peaks[route.peak] * product(route.parts) for route in routes]
        found = np.where(here, np.maximum.reduce(attained), found)
    return found


def _column(cost_class: CostClass) -> int:
    return DTYPES.index(cost_class.dtype) if cost_class.dtype in DTYPES else 0
