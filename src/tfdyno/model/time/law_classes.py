"""Kernels in classes that are priced alike on one kind of card, at any batch."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tfdyno.model.time.kernel_table import (
    LIBRARY_KINDS,
    CostClass,
    kept_by_kernels,
    table_of_kernels,
)
from tfdyno.model.time.kernel_time import peak_unit
from tfdyno.model.time.peaks import HALF_RATE_VARIANTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.program import Kernel, Program
    from tfdyno.model.time.peaks import Unit

    Booleans = NDArray[np.bool_]
    Indices = NDArray[np.intp]

FIRST_CHANNELS_LAST_TF32 = 9.0
"""Compute capability from which on XLA keeps float32 tensors with the channels last, as tensor
cores want them: ResNet-50 in float32 compiled for 7.0, 7.5 and 8.0 has channels first."""
ALIGNED_BYTES = 16
"""cuBLAS reads rows in vectors of so many bytes; rows of other lengths take slower kernels. XLA
pads 16-bit products to it and leaves float32 as it is (xla/service/gpu, cublas_pad_for_gemms)."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class LawClass:
    """What decides which constants price a kernel."""

    cost: CostClass
    unit: str
    """``cuda``, ``tf32`` or ``half`` for what a library computes; empty for all else."""
    aligned: bool = True
    turned: bool = False
    """Whether cuDNN copies a convolution's tensors into another order of dimensions and back."""
    half_rate: bool = False
    """Whether the card's tensor cores add up in float32 at half their rate."""


class Classed(NamedTuple):
    """The kernels of a program in classes, as one kind of card prices them."""

    distinct: tuple[LawClass, ...]
    places: Indices
    """The place of each kernel's class among the distinct ones."""
    by_unit: tuple[tuple[Unit, Indices], ...]
    """Kernels that a library computes, by what does."""
    by_peak: tuple[tuple[Unit, Indices], ...]
    """Those of them that are priced by the peak of a unit instead of as products."""
    turned: Indices
    attention: Indices
    in_loops: Booleans


def classed(program: Program, gpu: Gpu, *, tf32_allowed: bool) -> Classed:
    """Sort the kernels of a program by what the card has of units and rates."""
    dtypes = _library_dtypes(program.kernels)
    units = tuple((one, peak_unit(gpu, one, tf32_allowed=tf32_allowed)) for one in dtypes)
    old = float(gpu.compute_capability) < FIRST_CHANNELS_LAST_TF32
    return _classes(program.kernels, units, old, gpu.rates.variant in HALF_RATE_VARIANTS)


@kept_by_kernels
def _library_dtypes(kernels: tuple[Kernel, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.dtype for one in kernels if one.kind in LIBRARY_KINDS))


@kept_by_kernels
def _classes(
    kernels: tuple[Kernel, ...], dtype_units: tuple[tuple[str, Unit], ...], old: bool, halved: bool
) -> Classed:
    """Sort kernels; the answer is shared by all cards of the kind.

    Args:
        kernels: Of a program.
        dtype_units: The unit of the card for each type.
        old: Whether its cuDNN computes TF32 in one order of dimensions only.
        halved: Whether its tensor cores add up in float32 at half their rate.
    """
    names: Mapping[Unit, str] = {"fp32": "cuda", "fp64": "cuda", "tf32_tensor": "tf32"}
    classes: list[LawClass] = []
    units: list[Unit | None] = []
    known, table = dict(dtype_units), table_of_kernels(kernels)
    for kernel, index in zip(kernels, table.class_index, strict=True):
        cost = table.classes[index]
        if cost.kind not in LIBRARY_KINDS:
            classes.append(LawClass(cost=cost, unit=""))
            units.append(None)
            continue
        unit = known[kernel.dtype]
        name = names.get(unit, "half")
        aligned = name != "tf32" or kernel.kind != "gemm" or _aligned(kernel)
        dense = kernel.kind == "convolution" and cost.shape != "depthwise"
        turned = name == "tf32" and dense and old
        classes.append(
            LawClass(
                cost=cost,
                unit=name,
                aligned=aligned,
                turned=turned,
                half_rate=name != "cuda" and halved,
            )
        )
        units.append(unit)
    distinct = tuple(sorted(set(classes)))
    place = {one: index for index, one in enumerate(distinct)}
    peaks = [
        (units[index] or "fp32") if one.cost.shape == "grouped" else "fp32"
        for index, one in enumerate(classes)
    ]
    shapes = [one.cost.shape in ("depthwise", "grouped") for one in classes]
    own: list[Unit | None] = [
        unit if is_own else None for unit, is_own in zip(peaks, shapes, strict=True)
    ]
    return Classed(
        distinct=distinct,
        places=_fixed([place[one] for one in classes], np.intp),
        by_unit=_by_unit(units),
        by_peak=_by_unit(own),
        turned=_fixed(np.flatnonzero([one.turned for one in classes]), np.intp),
        attention=_fixed(np.flatnonzero([one.kind == "attention" for one in kernels]), np.intp),
        in_loops=_fixed([kernel.repeats > 1 for kernel in kernels], bool),
    )


def _by_unit(units: Sequence[Unit | None]) -> tuple[tuple[Unit, Indices], ...]:
    return tuple(
        (unit, _fixed([index for index, one in enumerate(units) if one == unit], np.intp))
        for unit in sorted({one for one in units if one})
    )


def _fixed(values: Sequence[Any] | np.ndarray, dtype: type) -> np.ndarray:
    """Return an array that all cards share and nobody changes."""
    found: np.ndarray = np.array(values, dtype=dtype)
    found.setflags(write=False)
    return found


def _aligned(kernel: Kernel) -> bool:
    """Return whether rows of a float32 product begin at whole vectors, as the model decides it."""
    fixed = (n for n in ("m", "n", "k") if n not in kernel.dims_scaled)
    return all(prod(kernel.dims.get(name, (4,))) * 4 % ALIGNED_BYTES == 0 for name in fixed)
