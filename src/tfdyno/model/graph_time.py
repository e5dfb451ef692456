"""Step time of TensorFlow's graph without XLA, from the kernels of ``runtime/per_primitive.py``.

No kernel is faster than the loads that its threads have under way allow (Little's law): a thread
waits ``load_latency`` for what it asked for. Where each thread takes one element at a time, or few
blocks add up many rows, this and not the bandwidth decides. How many threads TensorFlow's kernels
start, and that their loops over rows hold one load at a time, was read from its source
(``reduction_gpu_kernels.cu.h``) and from the machine code of its 2.21 wheel for compute capability
9.0. One thread of the host launches all of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log2, prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tfdyno.model.kernel_table import LIBRARY_KINDS, class_of, tile_padding, window_overlap
from tfdyno.model.kernel_time import rates, targets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tfdyno.core.hardware import Gpu
    from tfdyno.core.program import Kernel
    from tfdyno.core.time_model import Constants

    Floats = NDArray[np.float64]

WARP = 32
BLOCK = 1024
"""Threads of a block that adds up columns: 32 columns by 32 rows."""
COLUMNS_AT_ONCE = 16
"""Up to so many columns a warp holds several rows."""
ENOUGH_BLOCKS = 16
"""So many blocks of columns and TensorFlow no longer splits the rows among blocks."""
MOST_COLUMNS = 4096
"""Of more, each has one thread that walks down all rows."""
LONG_ROW = 1024
"""Rows this long get a block of threads each instead of a warp."""
UNROLL_ROW, ROW_BLOCK = 4, 256
"""Loads under way, and threads, where a block adds up one row (cub's segmented reduction)."""
NUMBER = 4096
"""Sums of up to so many numbers to one are a block's work."""


class Shape(NamedTuple):
    """What a kernel adds up, or runs over, at a batch."""

    outer: float
    summed: float
    inner: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphTime:
    """Seconds of a step; ``compute + memory + launch`` is ``step``."""

    compute_s: float
    memory_s: float
    launch_s: float
    """Starting kernels, and waiting for the host beyond what the device does meanwhile."""
    step_s: float
    device_s: float
    host_s: float


def graph_time(
    kernels: Sequence[Kernel],
    batch_size: float,
    card: tuple[Gpu, bool],
    constants: Constants,
    *,
    drains: bool,
    traced_batch_size: int,
) -> GraphTime:
    """Price a step of primitive operations.

        device = sum of kernels: FLOPs * s_per_flop + max(bytes / attained bandwidth, loads) + start
        host   = kernels * host_primitive
        step   = max(device, host), of forward and backward pass and of the update apart if the
                 device runs empty in between (``drains``)

    Args:
        kernels: Of ``per_primitive``.
        batch_size: Samples of the step.
        card: The card, and whether float32 may use TF32.
        constants: Of the time model, with ``load_latency``, ``e_primitive``, ``t_primitive``,
            ``host_primitive`` and ``t_recurrent``.
        drains: Whether the host looks at the gradients before it updates: loss scaling does.
        traced_batch_size: The batch at which ``Kernel.dims`` hold.
    """
    compute = np.array(_compute(kernels, batch_size, card, constants))
    memory = np.array([
        _memory(kernel, batch_size, batch_size / traced_batch_size, card[0], constants)
        for kernel in kernels
    ])  # fmt: skip
    counts = np.array([float(kernel.count) for kernel in kernels])
    chained = np.array([kernel.kind == "recurrent" for kernel in kernels])
    start = counts * np.where(chained, constants["t_recurrent"], constants["t_primitive"])
    host = np.where(chained, 0.0, counts * constants["host_primitive"])
    device = compute + memory + start
    update = np.array([drains and kernel.phase == "update" for kernel in kernels])
    step = sum(
        max(float(np.sum(device[part])), float(np.sum(host[part]))) for part in (~update, update)
    )
    computing, moving = float(np.sum(compute)), float(np.sum(memory))
    return GraphTime(
        compute_s=computing,
        memory_s=moving,
        launch_s=step - computing - moving,
        step_s=step,
        device_s=float(np.sum(device)),
        host_s=float(np.sum(host)),
    )


def _compute(
    kernels: Sequence[Kernel], batch_size: float, card: tuple[Gpu, bool], constants: Constants
) -> list[float]:
    """Seconds of arithmetic: that of library kernels; a time step's product counts as one."""
    classes = sorted({class_of(kernel) for kernel in kernels if kernel.kind in LIBRARY_KINDS})
    priced = rates(classes, targets([card], {}), constants) if classes else None
    per_flop = dict(zip(classes, priced.s_per_flop[0], strict=True)) if priced else {}
    return [
        kernel.flops.at(batch_size) * tile_padding(kernel) * float(per_flop[class_of(kernel)])
        if kernel.kind in LIBRARY_KINDS
        else 0.0
        for kernel in kernels
    ]


def _memory(
    kernel: Kernel, batch_size: float, growth: float, gpu: Gpu, constants: Constants
) -> float:
    """Seconds of moving data: by the bandwidth, or by the loads under way if those take longer."""
    moved = (kernel.read_bytes + kernel.write_bytes).at(batch_size) * window_overlap(kernel)
    by_bandwidth = moved / (gpu.memory_bytes_per_s * constants["e_primitive"])
    if kernel.kind == "recurrent":
        return 0.0  # of a time step the cache holds all
    resident = float(gpu.sm_count * gpu.rates.max_threads)
    waits = _waits(kernel, growth, resident) * constants["load_latency"]
    return max(by_bandwidth, waits * kernel.count)


def _waits(kernel: Kernel, growth: float, resident: float) -> float:
    """Loads one after the other, in the thread that has most, times the rounds of threads."""

    def size(name: str) -> float:
        amount = float(prod(kernel.dims.get(name, (1,))))
        return amount * growth if name in kernel.dims_scaled else amount

    if "elements" in kernel.dims:
        return size("elements") / (size("per_thread") * resident) if _single(kernel) else 0.0
    if "summed" not in kernel.dims:
        return 0.0
    return waits_of_sum(Shape(size("outer"), size("summed"), size("inner")), resident)


def _single(kernel: Kernel) -> bool:
    return prod(kernel.dims["per_thread"]) == 1


def waits_of_sum(shape: Shape, resident: float) -> float:
    """Loads one after the other in a sum, as TensorFlow's kernels split it among threads.

    Args:
        shape: The axes before, in and behind those added up.
        resident: Threads that the card holds at a time.
    """
    outer, summed, inner = shape
    if outer * inner <= 1.0:  # to one number
        return summed / BLOCK if summed <= NUMBER else 0.0
    if inner <= 1.0:
        if summed >= LONG_ROW:
            rounds = max(1.0, outer * ROW_BLOCK / resident)
            return rounds * summed / (ROW_BLOCK * UNROLL_ROW)
        return max(1.0, outer * WARP / resident) * ceil(summed / WARP)
    if outer > 1.0 or inner > MOST_COLUMNS:  # a thread for each column
        return max(1.0, outer * inner / resident) * summed
    if inner <= COLUMNS_AT_ONCE:
        rows = summed / max(1.0, WARP // inner)
        blocks = _power_of_two(min(max(1.0, rows / WARP), WARP))
        return rows / (WARP * blocks)
    columns = ceil(inner / WARP)
    split = _power_of_two(min(max(1.0, summed / WARP), WARP)) if columns < ENOUGH_BLOCKS else 1.0
    rounds = max(1.0, columns * split * BLOCK / resident)
    return rounds * summed / (WARP * split)


def _power_of_two(blocks: float) -> float:
    return 2.0 ** floor(log2(blocks))
