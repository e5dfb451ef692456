"""A program's kernels as arrays, sorted into classes of equal cost per unit of work."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, update_wrapper
from typing import TYPE_CHECKING, NamedTuple, TypeVar, TypeVarTuple, Unpack

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tfdyno.core.base.interval import Scaled
    from tfdyno.core.choose.program import Kernel, Program

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

Rest = TypeVarTuple("Rest")
Found = TypeVar("Found")
KEPT = 12
"""Answers of a function that are kept, by the kernels and the rest of what it was asked: those
of a workload on all cards."""
LIBRARY_KINDS = ("convolution", "gemm")
ON_UNITS = (*LIBRARY_KINDS, "attention")
"""Kinds whose arithmetic is products, for which a card has units."""
NARROW_CHANNELS = 8
"""A convolution with so few channels on one side leaves most of a tensor-core tile empty."""
DEPTHWISE_CHANNELS_PER_GROUP = 1
WINOGRAD_MIN_CHANNELS = 16
TILE_CHANNELS = 32
"""Channels per group that fill a tile of a grouped convolution."""


class CostClass(NamedTuple):
    """What decides a kernel's cost per FLOP and per byte."""

    kind: str
    dtype: str = ""
    direction: str = ""
    shape: str = ""
    """convolution: ``narrow grouped depthwise volume winograd3 winograd5 pointwise`` or nothing;
    reduce: ``rows`` (softmax, layer normalisation) or nothing (sums over a batch); all else:
    ``update`` where optimizers run, or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KernelTable:
    """Work of every kernel; the arrays of shape ``(kernels, 2)`` hold (fixed, per sample)."""

    classes: tuple[CostClass, ...]
    class_index: Indices
    launches: Floats
    flops: Floats
    """Useful ones, as the model needs them."""
    executed_flops: Floats
    """FLOPs with those that grouped convolutions waste on part-filled tiles."""
    traffic_bytes: Floats
    extra_bytes: Floats
    """Bytes read again because windows overlap (pooling)."""

    @staticmethod
    def of(program: Program) -> KernelTable:
        """Return the table of a program, which is kept for its tuple of kernels."""
        return table_of_kernels(program.kernels)

    def work(self, batch_size: float) -> ClassWork:
        """Sum the work at a batch by class: all that the time of a whole step depends on."""
        each = self.by_kernel(batch_size)

        def by_class(values: Floats) -> Floats:
            sums = np.bincount(self.class_index, values, minlength=len(self.classes))
            return sums.astype(np.float64)

        return ClassWork(
            launches=by_class(each.launches),
            executed_flops=by_class(each.executed_flops),
            traffic_bytes=by_class(each.traffic_bytes),
            extra_bytes=by_class(each.extra_bytes),
        )

    def by_kernel(self, batch_size: float) -> ClassWork:
        """Return the work at a batch, kernel by kernel."""
        at = np.array([1.0, batch_size])
        return ClassWork(
            launches=self.launches,
            executed_flops=self.executed_flops @ at,
            traffic_bytes=self.traffic_bytes @ at,
            extra_bytes=self.extra_bytes @ at,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassWork:
    """Work of a step; arrays end in the axis of classes, or of kernels."""

    launches: Floats
    executed_flops: Floats
    traffic_bytes: Floats
    extra_bytes: Floats


class _Identity:
    """Kernels as a cache key: the same object, not an equal one (kernels hold dictionaries)."""

    __slots__ = ("kernels",)

    def __init__(self, kernels: tuple[Kernel, ...]) -> None:
        self.kernels = kernels

    def __hash__(self) -> int:
        return id(self.kernels)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.kernels is other.kernels


def kept_by_kernels(
    function: Callable[[tuple[Kernel, ...], Unpack[Rest]], Found],
) -> Callable[[tuple[Kernel, ...], Unpack[Rest]], Found]:
    """Make a function of kernels answer once for the same tuple of them, and the same rest.

    What it returns is shared: nobody may change it.
    """
    kept: Callable[..., Found] = lru_cache(maxsize=KEPT)(
        lambda key, *rest: function(key.kernels, *rest)
    )

    def found(kernels: tuple[Kernel, ...], *rest: *Rest) -> Found:
        return kept(_Identity(kernels), *rest)

    return update_wrapper(found, function)


@kept_by_kernels
def table_of_kernels(kernels: tuple[Kernel, ...]) -> KernelTable:
    """Arrange kernels as arrays; see ``KernelTable``."""
    classes = [class_of(kernel) for kernel in kernels]
    distinct = tuple(sorted(set(classes)))
    position = {cost_class: index for index, cost_class in enumerate(distinct)}
    traffic = [_pair(kernel.read_bytes + kernel.write_bytes) for kernel in kernels]
    overlap = np.array([[window_overlap(kernel) - 1.0] for kernel in kernels]).reshape(-1, 1)
    traffic_bytes = np.array(traffic, dtype=float).reshape(-1, 2)
    padding = np.array([[tile_padding(kernel)] for kernel in kernels]).reshape(-1, 1)
    flops = np.array([_pair(kernel.flops) for kernel in kernels], dtype=float).reshape(-1, 2)
    return KernelTable(
        classes=distinct,
        class_index=np.array([position[c] for c in classes], dtype=np.intp),
        launches=np.array([float(kernel.count) for kernel in kernels]),
        flops=flops,
        executed_flops=flops * padding,
        traffic_bytes=traffic_bytes,
        extra_bytes=traffic_bytes * overlap,
    )


def class_of(kernel: Kernel) -> CostClass:
    """Return the cost class of a kernel; only library kernels differ by dtype and direction."""
    if kernel.kind in ("gemm", "attention"):
        return CostClass(kind=kernel.kind, dtype=kernel.dtype)
    if kernel.kind != "convolution":
        return CostClass(kind=kernel.kind, shape=fusion_shape(kernel))
    return CostClass("convolution", kernel.dtype, kernel.direction, convolution_shape(kernel))


def fusion_shape(kernel: Kernel) -> str:
    """Name the shape class of a kernel that no library provides; see ``CostClass.shape``."""
    if kernel.phase == "update":
        return "update"
    rows = kernel.kind == "reduce" and kernel.dims.get("inner") == (1,)
    return "rows" if rows else ""


def convolution_shape(kernel: Kernel) -> str:
    """Name the shape class of a convolution from its forward geometry (see ``Kernel.dims``)."""
    channels_in, channels_out = kernel.size("cin"), kernel.size("cout")
    groups = kernel.size("groups")
    if groups > 1:
        few = channels_in <= DEPTHWISE_CHANNELS_PER_GROUP * groups
        return "depthwise" if few else "grouped"
    if min(channels_in, channels_out) <= NARROW_CHANNELS:
        return "narrow"
    window, stride = kernel.dims.get("window", ()), kernel.dims.get("stride", ())
    if len(window) == 3:
        return "volume"
    if window and set(window) | set(stride) <= {1}:
        return "pointwise"
    if len(window) == 2 and set(stride) <= {1} and channels_in >= WINOGRAD_MIN_CHANNELS:
        return {(3, 3): "winograd3", (5, 5): "winograd5"}.get((window[0], window[1]), "")
    return ""


def window_overlap(kernel: Kernel) -> float:
    """Return how often a pooling kernel reads an element: window size over stride, at least 1."""
    if kernel.kind != "window":
        return 1.0
    return max(1.0, kernel.size("window") / kernel.size("stride"))


def tile_padding(kernel: Kernel) -> float:
    """Return FLOPs that a grouped convolution executes per useful one: part-filled tiles count."""
    groups = kernel.size("groups")
    if kernel.kind != "convolution" or groups <= 1:
        return 1.0
    per_group = max(1.0, kernel.size("cin") / groups)
    return max(1.0, TILE_CHANNELS / per_group) if convolution_shape(kernel) == "grouped" else 1.0


def _pair(value: Scaled) -> tuple[float, float]:
    return value.fixed, value.per_sample
