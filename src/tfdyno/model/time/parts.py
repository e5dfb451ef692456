"""What the price of a kernel is made of: every factor with its name and its constant.

The one place that says which constants price which class. ``kernel_time`` and ``step`` multiply
these parts to get seconds; ``explanation`` prints them. A new term of the time model goes here.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Literal, NamedTuple

from tfdyno.model.time.kernel_table import LIBRARY_KINDS, ON_UNITS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tfdyno.core.choose.time_model import Constants
    from tfdyno.model.time.kernel_table import CostClass

    Number = float | NDArray[np.float64]

TENSOR_FLOPS_PER_CLOCK = 512.0
"""FLOPs per clock and SM at which ``tensor_feed`` leaves the attained share as it is."""
TENSOR_UNITS = ("tf32", "half")
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
_MEMORY_WORDS = {"e_depthwise": "depthwise", "e_library": "library", "e_rows": "reduce rows"}
_DIRECTIONS = {"input_gradient": "d_input_gradient", "weight_gradient": "d_weight_gradient"}


class Part(NamedTuple):
    """One factor of a price."""

    name: str
    """What it stands for, in words that follow "share of the peak:"."""
    factor: Number
    """A number, or one per target where it depends on the card."""
    constant: str
    """Name in the time model."""


class Route(NamedTuple):
    """One way to do a kernel's arithmetic; the fastest counts."""

    name: str
    peak: Literal["unit", "cuda"]
    """Which peak the parts are shares of: that of the dtype's unit, or float32 on CUDA cores.

    float64 has units of its own: neither float32's peak nor Winograd serves it.
    """
    parts: tuple[Part, ...]


def product(parts: tuple[Part, ...]) -> Number:
    """Return all factors multiplied; 1.0 of none."""
    return prod((part.factor for part in parts), start=1.0)


def compute_routes(
    cost_class: CostClass, unit: str, tensor_per_clock: Number, constants: Constants
) -> tuple[Route, ...]:
    """List the ways to do the arithmetic of a class of kernel; none where bytes alone are priced.

    Args:
        cost_class: The class.
        unit: What multiplies its dtype: one of ``kernel_time.UNITS``.
        tensor_per_clock: FLOPs per clock and SM of the tensor cores, by target.
        constants: Global constants of the time model.
    """
    if cost_class.kind not in LIBRARY_KINDS:
        return ()
    if cost_class.shape == "depthwise":
        attained = _part("peak share, depthwise", "u_depthwise", constants)
        return (Route("depthwise kernel", "unit" if unit == "double" else "cuda", (attained,)),)
    routes = [Route("product", "unit", _product_parts(cost_class, unit, constants))]
    if unit in TENSOR_UNITS:
        exponent = "gemm_feed" if cost_class.kind == "gemm" else "tensor_feed"
        feed = (tensor_per_clock / TENSOR_FLOPS_PER_CLOCK) ** -constants[exponent]
        routes[0] = routes[0]._replace(
            parts=(
                *routes[0].parts,
                Part("(FLOP a clock / 512)^-value", feed, exponent),
            )
        )
    if unit not in ("half", "double") and cost_class.shape.startswith("winograd"):
        parts = (
            *_cuda(unit, constants),
            *_winograd(cost_class, unit, constants),
            *_direction(cost_class, constants),
        )
        routes.append(Route("Winograd", "cuda", parts))
    return tuple(routes)


def _product_parts(cost_class: CostClass, unit: str, constants: Constants) -> tuple[Part, ...]:
    """Share of a unit's peak that a class of library kernel attains, whatever the card."""
    tensor = unit in TENSOR_UNITS
    parts = [_part("peak share, tensor cores", f"u_{unit}", constants)] if tensor else []
    parts += () if tensor else _cuda(unit, constants)
    if cost_class.kind == "gemm":
        name = "d_gemm_tensor" if tensor else "d_gemm_cuda"
        return (*parts, _part("products over convolutions", name, constants))
    parts += _direction(cost_class, constants)
    if cost_class.shape == "grouped":
        parts.append(_part("grouped over plain", "u_grouped", constants))
    if cost_class.shape == "volume":
        parts.append(_part("three-dimensional over plain", "u_volume", constants))
    if cost_class.shape == "narrow" and tensor:
        parts.append(_part("few channels over many", "u_narrow", constants))
    return tuple(parts)


def _cuda(unit: str, constants: Constants) -> tuple[Part, ...]:
    attained = _part("peak share, CUDA cores", "u_cuda", constants)
    if unit != "shared":
        return (attained,)
    return (attained, _part("integer arithmetic in between", "u_shared", constants))


def _winograd(cost_class: CostClass, unit: str, constants: Constants) -> tuple[Part, ...]:
    """Return what Winograd saves; with TF32 cuDNN takes it for some of the convolutions only."""
    saves = _part("multiplications Winograd saves", cost_class.shape, constants)
    if unit != "tf32":
        return (saves,)
    kept = 1.0 + (saves.factor - 1.0) * constants["winograd_tf32"]
    return (saves, Part("where TF32 is not taken", kept / saves.factor, "winograd_tf32"))


def _direction(cost_class: CostClass, constants: Constants) -> tuple[Part, ...]:
    name = _DIRECTIONS.get(cost_class.direction)
    if not name:
        return ()
    words = f"{cost_class.direction.replace('_', ' ')} over forward"
    return (_part(words, name, constants),)


def memory_constant(cost_class: CostClass) -> str:
    """Name of the constant that is the share of the bandwidth which a class reaches."""
    if cost_class.shape == "depthwise":
        return "e_depthwise"
    if cost_class.kind in ON_UNITS:
        return "e_library"
    if cost_class.kind == "reduce" and cost_class.shape == "rows":
        return "e_rows"
    return EFFICIENCY.get(cost_class.kind, "e_loop")


def memory_parts(cost_class: CostClass, constants: Constants) -> tuple[Part, ...]:
    """Share of the memory bandwidth that a class of kernel attains."""
    name = memory_constant(cost_class)
    kind = _MEMORY_WORDS.get(name, cost_class.kind)
    return (_part(f"bandwidth share, {kind}", name, constants),)


def overlap_parts(cost_class: CostClass, constants: Constants) -> tuple[Part, ...]:
    """Share of the bytes read again, because windows overlap, that the caches do not catch."""
    if cost_class.kind in LIBRARY_KINDS:
        return (Part("caught by caches", 0.0, ""),)
    return (_part("re-read bytes caches miss", "window_overlap", constants),)


def _part(name: str, constant: str, constants: Constants) -> Part:
    return Part(name, constants[constant], constant)
