"""Seconds of every kernel as XLA of today runs a step (``catalog/data/kernel_model.toml``).

A kernel takes ::

    floor + (compute^p + memory^p)^(1/p)

because arithmetic and traffic overlap; launches are hidden by CUDA graphs, so the floor is what the
smallest kernel takes. Products are priced by what measured products reach
(``model.time.products``), fused attention by what measured attention does
(``model.time.attention``), a convolution as the product that it is (batch x places by output
channels by window x input channels), all else by its bytes and by the operations on its elements.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.model.time.attention import kernel_seconds
from tfdyno.model.time.kernel_table import LIBRARY_KINDS, KernelTable, kept_by_kernels
from tfdyno.model.time.law_classes import LawClass, classed
from tfdyno.model.time.parts import memory_constant
from tfdyno.model.time.peaks import peak_flops_per_s
from tfdyno.model.time.products import Products, compute_seconds, product_card
from tfdyno.model.time.step import HOST_FLOOR_POWER, StepTime

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.product_rates import ProductRates
    from tfdyno.core.choose.program import Kernel, Program
    from tfdyno.core.choose.time_model import Constants
    from tfdyno.model.time.peaks import Unit

    Booleans = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

INTEGER_LANES = 64.0
"""Integer operations per clock and SM (NVIDIA, CUDA C++ Programming Guide, arithmetic throughput:
compute capability 7.0 to 9.0). Blackwell has 128; random bits are what needs them."""
LEAST_PART = 0.02
"""The least part of a kernel's time beyond the floor: less is not worth a line of its own."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Work:
    """What the kernels of one program ask of one card; each array has one value per kernel.

    Seconds are of one launch at the full rate that the card offers; constants come on top.
    """

    classes: tuple[LawClass, ...]
    class_index: Indices
    launches: Floats
    compute_s: Floats
    """Arithmetic: products at the rate that measured ones reach, element operations on the lanes
    for integers, depthwise convolutions on the CUDA cores."""
    memory_s: Floats
    """Traffic at the card's bandwidth."""
    extra_s: Floats
    """What overlapping windows read again, likewise."""
    looped: Floats
    """Launches inside loops, which no CUDA graph holds."""
    cuda_s: Floats
    """Arithmetic on the CUDA cores where cuDNN may take them instead of TF32; infinite elsewhere.
    They work in any order of dimensions."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seconds:
    """Seconds of all launches of every kernel, by cause."""

    compute_s: Floats
    memory_s: Floats
    floor_s: Floats

    @property
    def total_s(self) -> Floats:
        """The three together."""
        return np.asarray(self.compute_s + self.memory_s + self.floor_s)


def work_of(
    program: Program, batch_size: float, gpu: Gpu, *, tf32_allowed: bool, rates: ProductRates,
    clock_ratio: float = 1.0,
) -> Work:  # fmt: skip
    """Arrange a program's kernels for one card.

    Args:
        program: Kernels; of the quick or the exact route.
        batch_size: Samples in the step.
        gpu: The card.
        tf32_allowed: Whether float32 products may run in TF32.
        rates: What measured products reach.
        clock_ratio: Share of its boost clock that the card holds under load.
    """
    table = KernelTable.of(program)
    each = table.by_kernel(batch_size)
    launches = np.maximum(each.launches, 1.0)
    by_class = classed(program, gpu, tf32_allowed=tf32_allowed)
    grown = batch_size / program.batch_size
    lanes = gpu.sm_count * INTEGER_LANES * gpu.boost_hz * clock_ratio
    compute = (table.flops @ np.array([1.0, batch_size])) / launches / lanes
    for unit, chosen in by_class.by_unit:
        sizes = _product_sizes(program.kernels, grown)[chosen]
        compute[chosen] = _products(sizes, gpu, unit, rates, clock_ratio)
    cuda = np.full(len(launches), np.inf)
    turned = by_class.turned
    if len(turned):
        sizes = _product_sizes(program.kernels, grown)[turned]
        cuda[turned] = _products(sizes, gpu, "fp32", rates, clock_ratio)
    fused = by_class.attention
    if len(fused):
        kernels = [program.kernels[index] for index in fused]
        compute[fused] = kernel_seconds(kernels, grown, gpu, rates, clock_ratio)
    for unit, chosen in by_class.by_peak:
        rate = peak_flops_per_s(gpu, unit) * clock_ratio
        compute[chosen] = each.executed_flops[chosen] / launches[chosen] / rate
    return Work(
        classes=by_class.distinct,
        class_index=by_class.places,
        launches=each.launches,
        compute_s=compute,
        memory_s=each.traffic_bytes / launches / gpu.memory_bytes_per_s,
        extra_s=each.extra_bytes / launches / gpu.memory_bytes_per_s,
        cuda_s=cuda,
        looped=np.where(by_class.in_loops, each.launches, 0.0),
    )


def _products(
    sizes: Floats, gpu: Gpu, unit: Unit, rates: ProductRates, clock_ratio: float
) -> Floats:
    """Return the seconds of products, and of convolutions as the products that they are."""
    products = Products(m=sizes[:, 0], n=sizes[:, 1], k=sizes[:, 2], batch=sizes[:, 3])
    card = product_card(gpu, unit, rates, clock_ratio=clock_ratio)
    return compute_seconds(products, card, rates.law)


@kept_by_kernels
def _product_sizes(kernels: tuple[Kernel, ...], grown: float) -> Floats:
    """Return m, n, k and how many of them each kernel computes, at a batch ``grown`` so much.

    Rows of kernels that no library computes are not a number.
    """
    none = (np.nan,) * 4
    rows = [_sizes(one, grown) if one.kind in LIBRARY_KINDS else none for one in kernels]
    return np.array(rows, dtype=float).reshape(-1, 4)


def _sizes(kernel: Kernel, grown: float) -> tuple[float, float, float, float]:
    def size(name: str) -> float:
        return kernel.size(name, grown)

    if kernel.kind == "gemm":
        return size("m"), size("n"), size("k"), size("batch")
    places, window = size("n") * size("output"), size("window")
    channels_in, channels_out = size("cin"), size("cout")
    if kernel.direction == "weight_gradient":
        return channels_out, channels_in * window, places, 1.0
    if kernel.direction == "input_gradient":
        return places * window, channels_in, channels_out, 1.0
    return places, channels_out, channels_in * window, 1.0


def compute_constants(one: LawClass) -> tuple[str, ...]:
    """Name the constants whose product is the share that a class reaches of its full rate."""
    cost = one.cost
    if cost.kind == "attention":
        return ()
    if cost.kind not in LIBRARY_KINDS:
        return ("u_elements",)
    if cost.shape in ("depthwise", "grouped"):
        return (f"u_{cost.shape}",)
    names: tuple[str, ...] = ("u_half_rate",) if one.half_rate else ()
    if cost.kind == "gemm":
        return names if one.aligned else (*names, "u_unaligned")
    return (*names, *_convolution_constants(one), *_winograd(one, one.unit))


def cuda_constants(one: LawClass) -> tuple[str, ...]:
    """Name the same of a float32 convolution that runs on the CUDA cores instead of in TF32."""
    return (*_convolution_constants(one), *_winograd(one, "cuda"))


def _convolution_constants(one: LawClass) -> tuple[str, ...]:
    return ("u_convolution", "u_volume") if one.cost.shape == "volume" else ("u_convolution",)


def _winograd(one: LawClass, unit: str) -> tuple[str, ...]:
    shape = one.cost.shape
    return (shape,) if unit == "cuda" and shape.startswith("winograd") else ()


def turned_constant(one: LawClass) -> str:
    """Name of the factor of the traffic of a convolution whose tensors are copied into order."""
    return "turned_pointwise" if one.cost.shape == "pointwise" else "turned"


def seconds(work: Work, constants: Constants) -> Seconds:
    """Price every kernel: the formula of the module's first lines, split by cause.

    What arithmetic and traffic take together is split in proportion to their powers; a part below
    ``LEAST_PART`` counts for nothing.
    """
    compute, memory = alone(work, constants)
    power = constants["overlap_power"]
    compute_p, memory_p = compute**power, memory**power
    together = compute_p + memory_p
    body = together ** (1.0 / power)
    part = np.divide(compute_p, together, out=np.zeros_like(together), where=together > 0.0)
    part = np.where(part < LEAST_PART, 0.0, np.where(part > 1.0 - LEAST_PART, 1.0, part))
    return Seconds(
        compute_s=work.launches * body * part,
        memory_s=work.launches * body * (1.0 - part),
        floor_s=work.launches * constants["t_kernel"],
    )


def alone(work: Work, constants: Constants) -> tuple[Floats, Floats]:
    """Return seconds of a launch's arithmetic and of its traffic, each as if the other took none.

    Of TF32 with its copies and of CUDA cores without, what is quicker: cuDNN tries both.
    """
    return _quicker(work, constants)[:2]


def on_cuda_cores(work: Work, constants: Constants) -> Booleans:
    """Mark float32 convolutions that are quicker on the CUDA cores than in TF32 with its copies."""
    return _quicker(work, constants)[2]


def _quicker(work: Work, constants: Constants) -> tuple[Floats, Floats, Booleans]:
    """Return arithmetic, traffic, and where the CUDA cores are what is quicker."""
    power = constants["overlap_power"]
    once = _traffic(work, constants)
    tensor, moved = _on_tensor_cores(work, constants, once)
    cuda = _on_cuda_cores(work, constants)
    chosen = cuda**power + once**power < tensor**power + moved**power
    return np.where(chosen, cuda, tensor), np.where(chosen, once, moved), np.asarray(chosen)


def _on_tensor_cores(work: Work, constants: Constants, traffic: Floats) -> tuple[Floats, Floats]:
    share = np.array([_multiplied(compute_constants(one), constants) for one in work.classes])
    turned = np.array([
        constants[turned_constant(one)] if one.turned else 1.0 for one in work.classes
    ])  # fmt: skip
    moved = traffic * turned[work.class_index]
    return np.asarray(work.compute_s / share[work.class_index]), np.asarray(moved)


def _on_cuda_cores(work: Work, constants: Constants) -> Floats:
    share = np.array([_multiplied(cuda_constants(one), constants) for one in work.classes])
    return np.asarray(work.cuda_s / share[work.class_index])


def _traffic(work: Work, constants: Constants) -> Floats:
    attained = np.array([constants[memory_constant(one.cost)] for one in work.classes])
    again = work.extra_s * constants["window_overlap"]
    return np.asarray((work.memory_s + again) / attained[work.class_index])


def host_seconds(work: Work, constants: Constants) -> float:
    """Return what the host needs for the launches of a step, beside the device."""
    convolutions = np.array([one.cost.kind == "convolution" for one in work.classes], dtype=bool)
    launched = float(work.launches[convolutions[work.class_index]].sum())
    every, looped = float(work.launches.sum()), float(work.looped.sum())
    return (
        every * constants["host_kernel"]
        + looped * constants["host_loop"]
        + launched * constants["host_convolution"]
    )


def step_of(work: Work, found: Seconds, constants: Constants) -> StepTime:
    """Sum the kernels of a step: ``(device^4 + host^4)^(1/4) + t_step``.

    Arrays have one value: the card.
    """
    compute, memory = float(found.compute_s.sum()), float(found.memory_s.sum())
    device = float(found.total_s.sum())
    host = host_seconds(work, constants)
    both = (device**HOST_FLOOR_POWER + host**HOST_FLOOR_POWER) ** (1.0 / HOST_FLOOR_POWER)
    step_s = both + constants["t_step"]
    return StepTime(
        compute_s=np.array([compute]),
        memory_s=np.array([memory]),
        step_s=np.array([step_s]),
        device_s=np.array([device]),
        host_s=np.array([host]),
    )


def _multiplied(names: tuple[str, ...], constants: Constants) -> float:
    return prod((constants[name] for name in names), start=1.0)
