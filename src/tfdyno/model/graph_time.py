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

from tfdyno.model import kernel_law
from tfdyno.model.kernel_table import LIBRARY_KINDS
from tfdyno.model.step import StepTime

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tfdyno.core.hardware import Gpu
    from tfdyno.core.product_rates import ProductRates
    from tfdyno.core.program import Kernel, Program
    from tfdyno.core.time_model import Constants

    Booleans = NDArray[np.bool_]
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphWork:
    """What the kernels of one program ask of one card; each array has one value per kernel."""

    law: kernel_law.Work
    """Seconds of one launch's arithmetic and traffic at the full rate."""
    waits: Floats
    """Loads one after the other in one launch, times the rounds of threads."""
    chained: Booleans
    """Time steps of a recurrent layer: the library launches them without the executor."""
    library: Booleans
    update: Booleans
    drains: bool
    """Whether the host looks at the gradients before it updates, so that the device runs empty:
    loss scaling does."""


def work_of(
    program: Program, batch_size: float, gpu: Gpu, *, tf32_allowed: bool, rates: ProductRates,
    clock_ratio: float = 1.0, drains: bool = False,
) -> GraphWork:  # fmt: skip
    """Arrange the kernels of a step of primitive operations for one card.

    Args:
        program: Kernels of ``per_primitive``.
        batch_size: Samples of the step.
        gpu: The card.
        tf32_allowed: Whether float32 products may run in TF32.
        rates: What measured products reach.
        clock_ratio: Share of its boost clock that the card holds under load.
        drains: As ``GraphWork.drains``.
    """
    kernels, growth = program.kernels, batch_size / program.batch_size
    resident = float(gpu.sm_count * gpu.rates.max_threads)
    return GraphWork(
        law=kernel_law.work_of(
            program, batch_size, gpu, tf32_allowed=tf32_allowed, rates=rates,
            clock_ratio=clock_ratio,
        ),
        waits=np.array([_waits(kernel, growth, resident) for kernel in kernels]),
        chained=np.array([kernel.kind == "recurrent" for kernel in kernels], dtype=bool),
        library=np.array([kernel.kind in LIBRARY_KINDS for kernel in kernels], dtype=bool),
        update=np.array([kernel.phase == "update" for kernel in kernels], dtype=bool),
        drains=drains,
    )  # fmt: skip


def seconds(work: GraphWork, constants: Constants) -> kernel_law.Seconds:
    """Price every kernel.

        library = start + (arithmetic^p + traffic^p)^(1/p), as under XLA
        others  = start + max(bytes / (bandwidth * e_primitive), waits * load_latency)

    Of a time step in a recurrent layer the cache holds all: it takes ``t_recurrent`` a launch.
    """
    law = work.law
    found = kernel_law.seconds(law, constants)
    moved = (law.memory_s + law.extra_s) / constants["e_primitive"]
    moved = np.maximum(moved, work.waits * constants["load_latency"])
    start = np.where(work.chained, constants["t_recurrent"], constants["t_primitive"])
    return kernel_law.Seconds(
        compute_s=np.where(work.library, found.compute_s, 0.0),
        memory_s=np.where(
            work.library, found.memory_s, np.where(work.chained, 0.0, law.launches * moved)
        ),
        floor_s=law.launches * start,
    )


def step_of(work: GraphWork, found: kernel_law.Seconds, constants: Constants) -> StepTime:
    """Sum the kernels of a step.

        host = kernels * host_primitive
        step = max(device, host), of forward and backward pass and of the update apart if the
               device runs empty in between (``drains``); and t_step

    Arrays have one value: the card.
    """
    device = found.total_s
    host = np.where(work.chained, 0.0, work.law.launches * constants["host_primitive"])
    apart = work.update & work.drains
    slower = (max(float(device[part].sum()), float(host[part].sum())) for part in (~apart, apart))
    step_s = sum(slower) + constants["t_step"]
    compute, memory = float(found.compute_s.sum()), float(found.memory_s.sum())
    return StepTime(
        compute_s=np.array([compute]),
        memory_s=np.array([memory]),
        launch_s=np.array([step_s - compute - memory]),
        step_s=np.array([step_s]),
        device_s=np.array([float(device.sum())]),
        host_s=np.array([float(host.sum())]),
    )


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
