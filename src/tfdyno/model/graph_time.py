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
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tfdyno.model.kernel_table import (
    LIBRARY_KINDS,
    CostClass,
    class_of,
    tile_padding,
    window_overlap,
)
from tfdyno.model.kernel_time import rates, targets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tfdyno.core.hardware import Gpu
    from tfdyno.core.interval import Scaled
    from tfdyno.core.program import Kernel
    from tfdyno.core.time_model import Constants

    Booleans = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

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
SCATTERED_LOADS = 16
"""Loads under way in a thread of cub's, where it has to look up where each of them lies."""
INDEX_WAITS = 3.0
"""How much longer than the wait for such loads the arithmetic of their places takes, with a
multiprocessor to each block. Judgement: three divisions a load; no measured step has shown it."""
MULTIPROCESSOR = 2048
NUMBER = 4096
"""Sums of up to so many numbers to one are a block's work."""
AXES = ("outer", "summed", "inner")


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


class ByKernel(NamedTuple):
    """Seconds of every kernel by cause."""

    compute_s: Floats
    memory_s: Floats
    start_s: Floats
    host_s: Floats
    """What the host needs to launch it, beside the device."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrimitiveTable:
    """The kernels of a program as arrays; those of shape ``(kernels, 2)``: (fixed, per sample)."""

    classes: tuple[CostClass, ...]
    """Of what multiplies: library calls, and products inside time steps."""
    class_index: Indices
    """-1: of nothing that multiplies."""
    flops: Floats
    traffic_bytes: Floats
    counts: Floats
    single: Booleans
    """Whether a thread takes one element at a time."""
    elements: Floats
    axes: Floats
    """Axes before, in and behind those that a reduction adds up, shape (kernels, 3, 2)."""
    summing: Booleans
    scattered: Booleans
    """Whether what a reduction adds up lies in pieces."""
    chained: Booleans
    """Time steps, each of which waits for the one before."""
    update: Booleans

    @staticmethod
    def of(kernels: Sequence[Kernel], traced_batch_size: int) -> PrimitiveTable:
        """Arrange kernels whose ``dims`` hold at ``traced_batch_size``."""
        library = [_class_of(one) for one in kernels]
        classes = tuple(sorted({one for one in library if one}))
        position = {one: index for index, one in enumerate(classes)}

        def sizes(name: str) -> Floats:
            return np.array([_size(one, name, traced_batch_size) for one in kernels])

        def pairs(amounts: list[Scaled]) -> Floats:
            found = [(one.fixed, one.per_sample) for one in amounts]
            return np.array(found, dtype=float).reshape(-1, 2)

        moved = [one.read_bytes + one.write_bytes for one in kernels]
        return PrimitiveTable(
            classes=classes,
            class_index=np.array([position[one] if one else -1 for one in library], dtype=np.intp),
            flops=pairs([one.flops.times(tile_padding(one)) for one in kernels]),
            traffic_bytes=pairs(
                [
                    amount.times(window_overlap(one))
                    for amount, one in zip(moved, kernels, strict=True)
                ]
            ),
            counts=np.array([float(one.count) for one in kernels]),
            single=np.array([one.dims.get("per_thread") == (1,) for one in kernels], dtype=bool),
            elements=sizes("elements").reshape(-1, 2),
            axes=np.stack([sizes(name).reshape(-1, 2) for name in AXES], axis=1),
            summing=np.array(["summed" in one.dims for one in kernels], dtype=bool),
            scattered=np.array(["scattered" in one.dims for one in kernels], dtype=bool),
            chained=np.array([one.kind == "recurrent" for one in kernels], dtype=bool),
            update=np.array([one.phase == "update" for one in kernels], dtype=bool),
        )


def graph_time(
    table: PrimitiveTable,
    batch_size: float,
    card: tuple[Gpu, bool],
    constants: Constants,
    *,
    drains: bool,
) -> GraphTime:
    """Price a step of primitive operations.

        device = sum of kernels: FLOPs * s_per_flop + max(bytes / attained bandwidth, loads) + start
        host   = kernels * host_primitive
        step   = max(device, host), of forward and backward pass and of the update apart if the
                 device runs empty in between (``drains``)

    Args:
        table: The kernels of ``per_primitive``.
        batch_size: Samples of the step.
        card: The card, and whether float32 may use TF32.
        constants: As ``by_kernel`` wants them.
        drains: Whether the host looks at the gradients before it updates: loss scaling does.
    """
    each = by_kernel(table, batch_size, card, constants)
    device, update = each.compute_s + each.memory_s + each.start_s, table.update & drains
    parts = [(float(np.sum(device[p])), float(np.sum(each.host_s[p]))) for p in (~update, update)]
    computing, moving = float(np.sum(each.compute_s)), float(np.sum(each.memory_s))
    step = sum(map(max, parts))
    return GraphTime(
        compute_s=computing,
        memory_s=moving,
        launch_s=step - computing - moving,
        step_s=step,
        device_s=sum(device_s for device_s, _ in parts),
        host_s=sum(host_s for _, host_s in parts),
    )


def by_kernel(
    table: PrimitiveTable, batch_size: float, card: tuple[Gpu, bool], constants: Constants
) -> ByKernel:
    """Price every kernel, in the order of the program.

    Args:
        table: The kernels of ``per_primitive``.
        batch_size: Samples of the step.
        card: The card, and whether float32 may use TF32.
        constants: Of the time model, with ``load_latency``, ``e_primitive``, ``t_primitive``,
            ``host_primitive`` and ``t_recurrent``.
    """
    gpu, at = card[0], np.array([1.0, batch_size])
    resident = float(gpu.sm_count * gpu.rates.max_threads)
    waits = np.where(table.single, table.elements @ at / resident, 0.0)
    axes = table.axes @ at
    sums = np.where(table.scattered, _waits_of_pieces(axes, resident), waits_of_sum(axes, resident))
    waits += np.where(table.summing, sums, 0.0)
    bandwidth = gpu.memory_bytes_per_s * constants["e_primitive"]
    memory = np.maximum(
        table.traffic_bytes @ at / bandwidth, table.counts * waits * constants["load_latency"]
    )
    per_flop = np.zeros(len(table.classes) + 1)  # the last: what no library computes
    if table.classes:
        per_flop[:-1] = rates(table.classes, targets([card], {}), constants).s_per_flop[0]
    start = np.where(table.chained, constants["t_recurrent"], constants["t_primitive"])
    return ByKernel(
        compute_s=table.flops @ at * per_flop[table.class_index],
        memory_s=np.where(table.chained, 0.0, memory),  # the cache holds all of a time step
        start_s=table.counts * start,
        host_s=np.where(table.chained, 0.0, table.counts * constants["host_primitive"]),
    )


def waits_of_sum(axes: Floats, resident: float) -> Floats:
    """Loads one after the other in sums, as TensorFlow's kernels split them among threads.

    Args:
        axes: Extents of the axes before those added up, of those and of the axes behind them, in
            the last dimension.
        resident: Threads that the card holds at a time.
    """
    outer, summed, inner = np.moveaxis(axes, -1, 0)
    by_warp = _rounds(outer * WARP, resident) * np.ceil(summed / WARP)
    by_block = _rounds(outer * ROW_BLOCK, resident) * summed / (ROW_BLOCK * UNROLL_ROW)
    by_thread = _rounds(outer * inner, resident) * summed
    rows = summed / np.maximum(1.0, WARP // np.minimum(inner, WARP))
    few = rows / (WARP * _power_of_two(rows / WARP))
    columns = np.ceil(inner / WARP)
    split = np.where(columns < ENOUGH_BLOCKS, _power_of_two(summed / WARP), 1.0)
    by_columns = _rounds(columns * split * BLOCK, resident) * summed / (WARP * split)
    return np.select(
        [
            outer * inner <= 1.0,  # to one number
            (inner <= 1.0) & (summed >= LONG_ROW),
            inner <= 1.0,
            (outer > 1.0) | (inner > MOST_COLUMNS),
            inner <= COLUMNS_AT_ONCE,
        ],
        [np.where(summed <= NUMBER, summed / BLOCK, 0.0), by_block, by_warp, by_thread, few],
        by_columns,
    )


def _waits_of_pieces(axes: Floats, resident: float) -> Floats:
    """The same of what lies in pieces: a block for each result."""
    _, summed, results = np.moveaxis(axes, -1, 0)
    rounds = _rounds(results * MULTIPROCESSOR, resident)
    return np.asarray(INDEX_WAITS * rounds * summed / (ROW_BLOCK * SCATTERED_LOADS))


def _rounds(threads: Floats, resident: float) -> Floats:
    return np.maximum(1.0, threads / resident)


def _power_of_two(blocks: Floats) -> Floats:
    """Blocks among which rows are split: 32 at most, rounded down to such a number."""
    return np.asarray(2.0 ** np.floor(np.log2(np.clip(blocks, 1.0, WARP))))


def _class_of(kernel: Kernel) -> CostClass | None:
    if kernel.kind == "recurrent":
        return CostClass(kind="gemm", dtype=kernel.dtype)
    return class_of(kernel) if kernel.kind in LIBRARY_KINDS else None


def _size(kernel: Kernel, name: str, traced_batch_size: int) -> tuple[float, float]:
    """A size of ``Kernel.dims`` as (fixed, per sample); 1 where the kernel has none."""
    size = float(prod(kernel.dims.get(name, (1,))))
    return (0.0, size / traced_batch_size) if name in kernel.dims_scaled else (size, 0.0)
